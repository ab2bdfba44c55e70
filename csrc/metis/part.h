#ifndef DORYLUS_METIS_PART_H
#define DORYLUS_METIS_PART_H

#include <stdint.h>

/* How the child ended: one of these, or 128 + the signal that killed it. */
enum {
    DM_OK = 0,
    DM_INPUT = 10,  /* METIS refused the graph */
    DM_MEMORY = 11, /* METIS ran out of memory */
    DM_OTHER = 12,  /* METIS gave up without saying why */
    DM_FORK = 13,   /* there was no child */
    DM_WAIT = 14    /* the child was lost */
};

/*
 * Cuts a symmetric graph of n vertices without loops into nparts parts: row v's
 * neighbours are col[xadj[v]..xadj[v+1]). Recursive bisection if bisect is not 0,
 * else k-way. Reads xadj (n+1) and col (xadj[n]), writes part (n). METIS runs in
 * a forked child that is killed after limit seconds. Returns one of the codes
 * above; part is written only for DM_OK.
 */
int dm_partition(int32_t n, int32_t *xadj, int32_t *col, int32_t nparts, int32_t seed,
                 int bisect, unsigned limit, int32_t *part);

#endif
