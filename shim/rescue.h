/* Rings on tmpfs whose processes are gone. */
#ifndef SHIM_RESCUE_H
#define SHIM_RESCUE_H

/* Moves them beside their databases, as <db>.ring. Safe against others doing
 * the same, and against owners in another pid name space. own is the ring of
 * this process: it must not even be opened, or its lock would go. */
void rescue_rings(const char *own);

/* A ring under the name that this process is to use is of a program that
 * exec()ed into this one. Renames it; rescue_rings() will move it. */
void rescue_set_aside(const char *path);

#endif
