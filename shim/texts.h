/* Texts that rows point to for as long as the process lives. For the writer's
 * thread alone. */
#ifndef SHIM_TEXTS_H
#define SHIM_TEXTS_H

/* A copy; NULL of an empty text or none, or without memory. */
const char *text_keep(const char *text);

#endif
