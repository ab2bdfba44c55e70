/*
 * Fibers: stacks of their own that hand over to each other within one OS thread. All
 * of them belong to the one call that runs device work at a time (the API's lock).
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace dk {

/* Why device work stopped. status 0: it did not. */
struct Fault {
  int status;
  char text[400];
};

struct Fiber {
  void *sp;    /* where it goes on; null before its first run */
  void *stack; /* from the pool while it is alive */
};

/* Starts or continues f; returns when it waits or ends. A fiber that faults is gone. */
void fiber_run(Fiber *f, void (*body)(void *), void *arg);
/* Called on a fiber: back to fiber_run. */
void fiber_wait();
/* Called on a fiber: records the fault, gives up the fiber. */
[[noreturn]] void fiber_raise(int status, const char *text);
/* The fault recorded since fault_clear, which every piece of device work begins with: it
 * also makes the calling thread the one whose faults are caught. */
Fault *fault();
void fault_clear();
/* Forgets a fiber that did not end; its stack returns to the pool. */
void fiber_drop(Fiber *f);

/* Runs body on a fiber with faults caught: 0, or the status of the fault. */
int guarded(void (*body)(void *), void *arg);

/* Says what lies at an address, for messages; set by memory.cc's users. */
using Describe = void (*)(uintptr_t addr, char *text, size_t size);
void describe_with(Describe d);

/* Adds the source place of the running thread to a message; set by block.cc. */
using Locate = void (*)(char *text, size_t size);
void locate_with(Locate l);

} // namespace dk
