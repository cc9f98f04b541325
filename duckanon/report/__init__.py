"""The report of a release: one page of HTML without network or scripts, in words that no statistician is needed for.

`measured` takes the numbers of one table, `figures` draws its pictures, and `html` writes the page from the record of a
run. The page may leave together with the release: what it says about the original is rounded, shared by many people, or
both (`safe`).
"""

from duckanon.report.measures import measured
from duckanon.report.page import html
from duckanon.report.pictures import Figure, figures

__all__ = ["Figure", "figures", "html", "measured"]
