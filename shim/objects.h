/*
 * Walks over the loaded objects. The loader locks its list meanwhile, and
 * fork() copies that lock as it is: a child that is made while another thread
 * walks could never load a library or catch an exception. So nobody forks while
 * we walk.
 */
#ifndef SHIM_OBJECTS_H
#define SHIM_OBJECTS_H

#include <link.h>

/* As dl_iterate_phdr(). */
int objects_walk(int (*each)(struct dl_phdr_info *, size_t, void *),
                 void *data);

#endif
