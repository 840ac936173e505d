/*
 * fault.h - named fault points, compiled in with LC_FAULTS (test builds): with LC_FAULT_KILL=name:n in the
 * environment the process ends itself by SIGKILL when the point is passed the n-th time; with LC_FAULT_TERM=name:n it
 * sends itself SIGTERM there and goes on. spec/support/faults.lua lists the points.
 *
 * Threads: any.   Tests: spec/fault
 */
#ifndef LC_BASE_FAULT_H
#define LC_BASE_FAULT_H

#ifdef LC_FAULTS
void lc_fault_point(const char *name);
#define LC_FAULT(name) lc_fault_point(name)
#else
#define LC_FAULT(name) ((void)0)
#endif

#endif
