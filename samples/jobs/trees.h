/* What /sys would be on each virtual host, in a folder that goes with this
 * process however it ends. */
#ifndef JOBS_TREES_H
#define JOBS_TREES_H

struct trees {
    char folder[256];
    int keeper; /* what keeps it: goes when this end of a pipe is closed */
    int pid;
};

/* 0, or -1 with errno. */
int trees_make(struct trees *trees, int hosts);
void trees_end(struct trees *trees);

#endif
