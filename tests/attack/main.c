#include "attack.h"

int relative, at = AT_FDCWD;

static const struct op *const tables[] = {write_ops,   metadata_ops, read_ops,      ipc_ops,
                                          process_ops, network_ops,  privilege_ops, wrapper_ops};

char *deep(const char *dir, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, name) < 0) exit(2);
    return path;
}

char *in(const char *dir, const char *name) {
    if (!relative) return deep(dir, name);
    if (at == AT_FDCWD) {
        at = open(dir, O_PATH | O_DIRECTORY);
        if (at < 0) {
            /* The operation must fail for this reason and not act on the current directory instead. */
            puts(strerrorname_np(errno));
            exit(1);
        }
    }
    return strdup(name);
}

int overwrite(int fd) {
    if (fd < 0) return -1;
    return write(fd, "pwned\n", 6) == 6 ? 0 : -1;
}

int run_named(int argc, char **argv) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct op *op = tables[t]; op->name; op++)
            if (argc > 0 && strcmp(op->name, argv[0]) == 0) {
                if (argc - 1 < op->least) {
                    fprintf(stderr, "attack: usage: attack %s %s\n", op->name, op->args);
                    exit(2);
                }
                return op->run(argv + 1);
            }
    fprintf(stderr, "attack: no operation '%s'\n", argc > 0 ? argv[0] : "");
    exit(2);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    argc--, argv++;
    if (argc > 0 && strcmp(argv[0], "-d") == 0) relative = 1, argc--, argv++;
    if (argc > 0 && strcmp(argv[0], "operations") == 0) {
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
            for (const struct op *op = tables[t]; op->name; op++) printf("%s %s\n", op->name, op->args);
        return 0;
    }
    if (run_named(argc, argv) == 0) {
        puts("ok");
        return 0;
    }
    const char *name = strerrorname_np(errno);
    printf("%s\n", name ? name : "UNKNOWN");
    return 1;
}
