/* Addresses: device memory between guard pages, pinned and registered host memory. */
#pragma once

#include "rng.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace dk {

enum class Kind { Device, Pinned, Registered };

struct Region {
  uintptr_t base;
  size_t size; /* as asked for */
  Kind kind;
  int device;    /* that owns it; for host memory the current one */
  char *map;     /* pages of ours behind it; null where registered */
  size_t mapped;
};

class Memory {
public:
  /* Device or pinned memory of n > 0 bytes, all bits set; null without host memory.
   * It begins behind or ends before a guard page, as rng says. */
  const Region *take(size_t n, Kind kind, int device, Rng &rng);
  const Region *enlist(uintptr_t base, size_t n, int device);
  /* False where the bytes around it, which are nobody's, were written. Its pages
   * are never used again, so that later accesses fault. */
  bool drop(uintptr_t base);
  bool intact(const Region &r) const;
  /* The region that holds addr, or whose last byte is just before it; else null. */
  const Region *find(uintptr_t addr) const;
  /* Whether [addr, addr+n) lies within one region. */
  const Region *range(uintptr_t addr, size_t n) const;
  const Region *exact(uintptr_t base) const;
  /* Whether the address was given out by take at any time. */
  bool ours(uintptr_t addr) const;
  void clear();
  const std::map<uintptr_t, Region> &all() const { return regions_; }

private:
  char *pages(size_t n);

  std::map<uintptr_t, Region> regions_;
  struct Window {
    char *mem;
    size_t size, used;
  };
  std::map<uintptr_t, Window> windows_;
};

} // namespace dk
