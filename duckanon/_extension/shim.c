/* duckanon.duckdb_extension: starts Python inside DuckDB and hands the database over to duckanon._extension.loading.
 *
 * The library is linked to neither Python nor DuckDB, so that one file per platform serves every Python 3.11 or later
 * and every DuckDB that duckanon supports. `duckanon extension` appends a block that says which Python to start, and
 * DuckDB's footer:
 *
 *     "DUCKANON\0" libpython "\0" interpreter "\0" folder of the package "\0" version of the package "\0", 4096 bytes
 *     footer, 534 bytes
 */
#ifdef _WIN32
#include <windows.h>
#define EXPORTED __declspec(dllexport)
#else
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define EXPORTED __attribute__((visibility("default")))
#endif
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { FOOTER_BYTES = 534, BLOCK_BYTES = 4096, ERROR_BYTES = 2048 };
enum { LIBPYTHON, INTERPRETER, FOLDER, VERSION, FIELDS };

/* The beginning of DuckDB's struct duckdb_extension_access; Python reads the rest of it. */
struct extension_access {
    void (*set_error)(void *info, const char *error);
};

static void *python; /* the library that has Python's functions */
static char block[BLOCK_BYTES + 1];
static char error_text[ERROR_BYTES];

#ifdef _WIN32
static void *open_library(const char *path) { return (void *)LoadLibraryA(path); }
static void *symbol(const char *name) { return (void *)GetProcAddress((HMODULE)python, name); }
static const char *library_error(void) { return "Windows cannot load it"; }
static void set_variable(const char *name, const char *value) { _putenv_s(name, value ? value : ""); }
static bool file_exists(const char *path) { return GetFileAttributesA(path) != INVALID_FILE_ATTRIBUTES; }
static void *running_python(void) { return NULL; }

static FILE *open_own_file(void)
{
    HMODULE self;
    char path[BLOCK_BYTES];
    if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (LPCSTR)open_own_file, &self)
        || !GetModuleFileNameA(self, path, sizeof path))
        return NULL;
    return fopen(path, "rb");
}
#else
static void *open_library(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* GLOBAL: numpy and pyarrow look for Python's symbols */
}

static void *symbol(const char *name) { return dlsym(python, name); }
static const char *library_error(void) { return dlerror(); }
static bool file_exists(const char *path) { return access(path, F_OK) == 0; }

static void set_variable(const char *name, const char *value)
{
    if (value) setenv(name, value, 1);
    else unsetenv(name);
}

/* The program itself where it is a Python: a second one beside it would share its symbols and crash. */
static void *running_python(void)
{
    void *program = dlopen(NULL, RTLD_NOW);
    return program && dlsym(program, "Py_IsInitialized") ? program : NULL;
}

static FILE *open_own_file(void)
{
    Dl_info self;
    return dladdr((void *)open_own_file, &self) ? fopen(self.dli_fname, "rb") : NULL;
}
#endif

/* Declares a function of Python's C API as a local pointer. */
#define PYTHON(type, name, ...) type (*name)(__VA_ARGS__) = (type(*)(__VA_ARGS__))symbol(#name)

/* Read the block into its fields; return what is wrong, or NULL. */
static const char *read_block(const char *fields[FIELDS])
{
    FILE *file = open_own_file();
    if (!file) return "duckanon: the extension cannot read its own file.";
    bool is_read = !fseek(file, -(long)(FOOTER_BYTES + BLOCK_BYTES), SEEK_END)
                   && fread(block, 1, BLOCK_BYTES, file) == BLOCK_BYTES;
    fclose(file);
    const char *at = block;
    if (!is_read || memcmp(block, "DUCKANON", sizeof "DUCKANON"))
        return "duckanon: the extension does not say which Python to start; write it anew: duckanon extension.";
    for (int i = 0; i < FIELDS; i++) fields[i] = at += strlen(at) + 1;
    return NULL;
}

/* Run code of our own in an empty namespace; return what is wrong, or NULL. The code puts its error into error_text. */
static const char *run(const char *code)
{
    enum { FILE_INPUT = 257 }; /* Py_file_input */
    PYTHON(int, PyGILState_Ensure, void);
    PYTHON(void, PyGILState_Release, int);
    PYTHON(void *, PyDict_New, void);
    PYTHON(void *, PyRun_String, const char *, int, void *, void *);
    PYTHON(void, PyErr_Print, void);
    PYTHON(void, Py_DecRef, void *);
    int state = PyGILState_Ensure();
    void *names = PyDict_New(), *result = PyRun_String(code, FILE_INPUT, names, names);
    if (!result) PyErr_Print();
    bool is_done = result != NULL;
    Py_DecRef(result);
    Py_DecRef(names);
    PyGILState_Release(state);
    return is_done ? NULL : "duckanon: its Python code does not start, for the reason above.";
}

/* Let algorithms at work stop before the program ends. */
static void stop(void)
{
    PYTHON(int, Py_IsInitialized, void);
    if (Py_IsInitialized()) run("from duckanon._extension import loading\nloading.stop()");
}

/* Start the interpreter: with its virtual environment, without signal handlers, with C's streams as they are. */
static const char *initialize(const char *interpreter)
{
    PYTHON(void, Py_SetProgramName, const wchar_t *);
    PYTHON(wchar_t *, Py_DecodeLocale, const char *, size_t *);
    PYTHON(void, Py_InitializeEx, int);
    PYTHON(void *, PyInitConfig_Create, void);
    PYTHON(int, PyInitConfig_SetStr, void *, const char *, const char *);
    PYTHON(int, Py_InitializeFromInitConfig, void *);
    if (PyInitConfig_Create) { /* from Python 3.14 on */
        void *config = PyInitConfig_Create();
        if (!config || PyInitConfig_SetStr(config, "program_name", interpreter) || Py_InitializeFromInitConfig(config))
            return "duckanon: Python does not start; write the extension anew: duckanon extension.";
    } else {
        Py_SetProgramName(Py_DecodeLocale(interpreter, NULL));
        Py_InitializeEx(0); /* 0: Ctrl-C stays the shell's */
    }
    return NULL;
}

/* Load Python and start it, unless it runs already; return what is wrong, or NULL. */
static const char *start(const char *fields[FIELDS])
{
    static const char *const foreign[] = {"PYTHONHOME", "PYTHONPATH"}; /* may belong to another Python */
    enum { COUNT = sizeof foreign / sizeof *foreign };
    char *kept[COUNT];
    if (python) return NULL;
    if (!(python = running_python()) && !file_exists(fields[INTERPRETER])) {
        snprintf(error_text, sizeof error_text,
                 "duckanon: the Python that the extension was written for is gone (%s); write it anew: duckanon extension.",
                 fields[INTERPRETER]);
        return error_text;
    }
    if (!python && !(python = open_library(fields[LIBPYTHON]))) {
        snprintf(error_text, sizeof error_text, "duckanon: Python's library cannot be loaded (%s).", library_error());
        return error_text;
    }
    PYTHON(int, Py_IsInitialized, void);
    PYTHON(void *, PyEval_SaveThread, void);
    if (Py_IsInitialized()) return NULL;
    for (int i = 0; i < COUNT; i++) {
        const char *value = getenv(foreign[i]);
        kept[i] = value ? strdup(value) : NULL;
        set_variable(foreign[i], NULL);
    }
    const char *wrong = initialize(fields[INTERPRETER]);
    for (int i = 0; i < COUNT; i++) {
        if (kept[i]) set_variable(foreign[i], kept[i]);
        free(kept[i]);
    }
    if (wrong) {
        python = NULL;
        return wrong;
    }
    PyEval_SaveThread();
    atexit(stop);
    return NULL;
}

/* Called by LOAD. The code gets addresses, not texts: a path may hold any character. */
EXPORTED bool duckanon_init_c_api(void *info, struct extension_access *access)
{
    static const char code[] =
        "import ctypes, sys\n"
        "try:\n"
        "    folder, version = (ctypes.string_at(address).decode() for address in (%llu, %llu))\n"
        "    if folder not in sys.path: sys.path.append(folder)\n"
        "    from duckanon._extension import loading\n"
        "    loading.start(%llu, %llu, version)\n"
        "except BaseException as error:\n"
        "    text = str(error) or type(error).__name__\n"
        "    if not text.startswith(('anon', 'duckanon')): text = 'duckanon: its Python code does not load: ' + text\n"
        "    text = text.encode('utf-8', 'replace')[:%d] + b'\\0'\n"
        "    ctypes.memmove(%llu, text, len(text))\n";
    char filled[sizeof code + 6 * 24];
    const char *fields[FIELDS], *wrong = read_block(fields);
    error_text[0] = 0;
    if (!wrong) wrong = start(fields);
    if (!wrong) {
        snprintf(filled, sizeof filled, code, (unsigned long long)fields[FOLDER], (unsigned long long)fields[VERSION],
                 (unsigned long long)info, (unsigned long long)access, ERROR_BYTES - 1, (unsigned long long)error_text);
        wrong = run(filled);
    }
    if (!wrong && error_text[0]) wrong = error_text;
    if (wrong) access->set_error(info, wrong);
    return !wrong;
}
