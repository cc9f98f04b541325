"""The workbench in the browser: it edits one policy file, shows what each choice does, and runs the release.

`policy_text`, `edits`, `bench`, `counts`, `trials`, `trees`, `hierarchy_files` and `works` know no page; `site` renders
them, `app` serves them on 127.0.0.1, and `server` starts and ends it (`duckanon workbench`, installed by
`duckanon[workbench]`).
"""
