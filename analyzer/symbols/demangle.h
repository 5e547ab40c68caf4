/* Names of C++ and Rust as their authors wrote them. */
#ifndef COMMTRACE_SYMBOLS_DEMANGLE_H
#define COMMTRACE_SYMBOLS_DEMANGLE_H

struct ct_arena;

/* A copy in the arena, demangled if name is mangled; NULL for NULL. */
const char *ct_demangle(struct ct_arena *arena, const char *name);

#endif
