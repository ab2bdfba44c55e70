//go:build metis && unix

#define _GNU_SOURCE
#include "part.h"

#include <errno.h>
#include <metis.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

_Static_assert(sizeof(idx_t) == 4, "this METIS has 64-bit ids; build one with IDXTYPEWIDTH 32");

/*
 * The child has one thread and a copy of everything. It touches no Go memory but
 * the arrays it was given, and leaves by _exit or by a signal. The handlers it
 * inherits belong to a Go runtime that has no threads here, hence the defaults.
 */
static void child(int32_t n, int32_t *xadj, int32_t *col, int32_t nparts, int32_t seed,
                  int bisect, unsigned limit, int32_t *out)
{
    static const int fatal[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGALRM};
    sigset_t none;
    for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    alarm(limit);
    dup2(2, 1); /* METIS prints its complaints to standard output */

    idx_t options[METIS_NOPTIONS], ncon = 1, cut = 0;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_NUMBERING] = 0;
    options[METIS_OPTION_SEED] = seed;
    int rc = (bisect ? METIS_PartGraphRecursive : METIS_PartGraphKway)(
        &n, &ncon, xadj, col, NULL, NULL, NULL, &nparts, NULL, NULL, options, &cut, out);
    switch (rc) {
    case METIS_OK:
        _exit(DM_OK);
    case METIS_ERROR_INPUT:
        _exit(DM_INPUT);
    case METIS_ERROR_MEMORY:
        _exit(DM_MEMORY);
    default:
        _exit(DM_OTHER);
    }
}

int dm_partition(int32_t n, int32_t *xadj, int32_t *col, int32_t nparts, int32_t seed,
                 int bisect, unsigned limit, int32_t *part)
{
    size_t size = (size_t)n * sizeof *part;
    int32_t *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return DM_MEMORY;
    memset(shared, 0xff, size); /* -1: a result that METIS leaves unwritten shows */
    int code, status;
    pid_t pid = fork();
    if (pid == 0)
        child(n, xadj, col, nparts, seed, bisect, limit, shared);
    if (pid < 0) {
        code = DM_FORK;
    } else {
        pid_t got;
        do
            got = waitpid(pid, &status, 0);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            code = DM_WAIT;
        else if (WIFSIGNALED(status))
            code = 128 + WTERMSIG(status);
        else
            code = WEXITSTATUS(status);
    }
    if (code == DM_OK)
        memcpy(part, shared, size);
    munmap(shared, size);
    return code;
}
