/* Runs kernels: blocks one after the other, a block's threads as fibers. */
#pragma once

#include "../host.h"
#include "rng.h"

#include <vector>

namespace dk {

struct Launch {
  const Kernel *kernel;
  std::vector<uint64_t> args;
  int32_t grid, block;
  int64_t shared; /* bytes of dynamic shared memory */
};

/* All kernels, linked by next. */
const Kernel *kernels();

/* Runs l in an order of blocks, warps and lanes that rng gives. 0, or the status of
 * the fault, which fault() describes. */
int run(const Launch &l, Rng &rng);

/* The most shared memory a block of this kernel declared so far, in bytes. */
int64_t static_shared(const Kernel *k);

} // namespace dk
