/*
 * The numbers of the job's layout, where the labels give them.
 */
#ifndef COMMTRACE_LAYOUT_H
#define COMMTRACE_LAYOUT_H

#include "roles/evidence.h"

void ct_layout_derive(const struct ct_view *view, struct ct_roles *roles);

#endif
