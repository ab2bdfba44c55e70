#include "device.h"

#include <sys/mman.h>

namespace dk {
namespace {

thread_local std::vector<CUcontext> stack; /* the last one is current */

} // namespace

Driver &driver() {
  static Driver *d = new Driver; /* never destroyed: threads may outlive main */
  return *d;
}

uintptr_t new_handle() {
  static uintptr_t next, end;
  if (next == end) {
    const size_t size = size_t{1} << 28;
    void *m = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    next = reinterpret_cast<uintptr_t>(m);
    end = next + size;
  }
  return next += 16;
}

Context *Driver::context(CUcontext h) {
  for (auto &c : primary)
    if (c && c->handle == h) return c.get();
  return nullptr;
}

size_t Driver::memory_live() const {
  size_t n = 0;
  for (size_t u : used) n += u;
  return n;
}

std::vector<CUcontext> &context_stack() { return stack; }
CUcontext current_handle() { return stack.empty() ? nullptr : stack.back(); }
Context *current() { return stack.empty() ? nullptr : driver().context(stack.back()); }

void set_current(CUcontext h) {
  if (!stack.empty()) stack.pop_back();
  if (h) stack.push_back(h);
}

void reset() {
  Driver &d = driver();
  d.initialised = false;
  d.set = {};
  d.rng.state = d.set.seed;
  d.faults.clear();
  d.count.clear();
  d.memory.clear();
  d.used.clear();
  d.peak = 0;
  d.streams = {};
  d.orphans.clear();
  d.events = {};
  d.functions = {};
  d.modules = {};
  d.primary.clear();
  d.complaint.clear();
}

bool fatal(int status) {
  switch (status) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case 710: /* assert */
  case 714: /* hardware stack */
  case 715: /* illegal instruction */
  case 716: /* misaligned address */
  case 717: /* address space */
  case 718: /* program counter */
  case 719: /* launch failed */
  case CUDA_ERROR_UNKNOWN: return true;
  }
  return false;
}

} // namespace dk
