#include "block.h"

#include "fiber.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include <sys/mman.h>
#include <unistd.h>

namespace dk {

const Place *here;

namespace {

enum State : uint8_t { Ready, AtBarrier, AtCollect, Done };

struct Thread {
  Place place;
  Fiber fiber;
  State state;
  int line;
  uint32_t mask;
  Combine combine;
  void *mine;
};

/* Shared memory of one declaration: it ends at a guard page. */
struct Slab {
  char *mem;
  int64_t bytes;
};

constexpr int64_t kPoison = 0xff;

Kernel *list;
const Launch *launch;
std::vector<Thread> threads;
Thread *self; /* the running one */
std::vector<uint32_t> gathered; /* by warp: the lanes that wait in collect */
std::map<const void *, Slab> slabs;
int64_t declared;
std::map<const Kernel *, int64_t> seen;
std::vector<std::pair<char *, size_t>> maps;

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

/* Memory of n bytes between guard pages, aligned to 16 where n allows it. */
char *guarded_memory(int64_t n) {
  size_t len = (static_cast<size_t>(n) + page() - 1) / page() * page();
  void *m = mmap(nullptr, len + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) raise(2, "no host memory for shared memory", nullptr, 0);
  char *base = static_cast<char *>(m);
  maps.push_back({base, len + 2 * page()});
  mprotect(base + page(), len, PROT_READ | PROT_WRITE);
  memset(base + page(), kPoison, len);
  return base + page() + len - (static_cast<size_t>(n) + 15) / 16 * 16;
}

void where(char *text, size_t size) {
  if (!self) {
    snprintf(text, size, "%s", "");
    return;
  }
  snprintf(text, size, " in %s, block %d of %d, thread %d of %d", launch->kernel->name, self->place.bid, self->place.gdim,
           self->place.tid, self->place.bdim);
}

void body(void *) { launch->kernel->call(launch->kernel->fn, launch->args.data()); }

void step(Thread *t) {
  self = t;
  here = &t->place;
  fiber_run(&t->fiber, body, nullptr);
  if (!t->fiber.stack) t->state = Done;
  self = nullptr;
}

/* Says why no thread can go on, as error 719. */
void stuck() {
  const Thread *w = nullptr, *other = nullptr;
  for (const Thread &t : threads)
    if (t.state == AtBarrier || t.state == AtCollect) {
      w = &t;
      break;
    }
  for (const Thread &t : threads)
    if (t.state != w->state || t.line != w->line || (w->state == AtCollect && t.mask != w->mask)) {
      other = &t;
      break;
    }
  Fault *f = fault();
  f->status = 719;
  int n = snprintf(f->text, sizeof f->text, "divergent %s in %s, block %d: thread %d waits at line %d",
                   w->state == AtBarrier ? "barrier" : "warp operation", launch->kernel->name, w->place.bid, w->place.tid, w->line);
  if (w->state == AtCollect) n += snprintf(f->text + n, sizeof f->text - n, " with mask %08x", w->mask);
  if (!other) {
    snprintf(f->text + n, sizeof f->text - n, ", for lanes that do not exist");
  } else if (other->state == Done) {
    snprintf(f->text + n, sizeof f->text - n, ", thread %d has ended", other->place.tid);
  } else {
    n += snprintf(f->text + n, sizeof f->text - n, ", thread %d at line %d", other->place.tid, other->line);
    if (other->state == AtCollect) snprintf(f->text + n, sizeof f->text - n, " with mask %08x", other->mask);
  }
}

/* Lets all threads pass the barrier once every one of them waits at the same line. */
bool open_barrier() {
  for (const Thread &t : threads)
    if (t.state != AtBarrier || t.line != threads[0].line) return false;
  for (Thread &t : threads) t.state = Ready;
  return true;
}

/* The lanes in an order of chance; of a full warp mostly one of 16,384 cheap ones. */
void order_lanes(uint32_t *lane, uint32_t have, Rng &rng) {
  const uint64_t r = rng.next();
  if (have == 32 && r & 3) {
    const uint32_t step = (r >> 2 & 31) | 1, start = r >> 8 & 31, flip = r >> 16 & 31;
    for (uint32_t i = 0; i < 32; i++) lane[i] = ((start + i * step) & 31) ^ flip;
    return;
  }
  for (uint32_t i = 0; i < have; i++) lane[i] = i;
  rng.shuffle(lane, have);
}

void run_block(int32_t bid, Rng &rng) {
  const int32_t n = launch->block;
  const uint32_t warps = static_cast<uint32_t>((n + 31) / 32);
  for (int32_t i = 0; i < n; i++) threads[i] = Thread{{i, bid, n, launch->grid}, {}, Ready, 0, 0, nullptr, nullptr};
  gathered.assign(warps, 0);
  for (auto &s : slabs) memset(s.second.mem, kPoison, s.second.bytes);
  std::vector<uint32_t> order(warps);
  for (uint32_t w = 0; w < warps; w++) order[w] = w;
  uint32_t lane[32];
  do {
    bool moved = true;
    while (moved) {
      moved = false;
      rng.shuffle(order.data(), warps);
      for (uint32_t w : order) {
        const uint32_t have = std::min<uint32_t>(32, static_cast<uint32_t>(n) - w * 32);
        /* Some warps run as far as they can, others one step: both orders find bugs. */
        for (bool again = true; again;) {
          again = false;
          order_lanes(lane, have, rng);
          for (uint32_t i = 0; i < have; i++) {
            Thread *t = &threads[w * 32 + lane[i]];
            if (t->state != Ready) continue;
            step(t);
            if (fault()->status) return;
            moved = again = true;
          }
          if (rng.next() & 1) break;
        }
      }
    }
  } while (open_barrier());
  for (const Thread &t : threads)
    if (t.state != Done) {
      stuck();
      return;
    }
}

} // namespace

const Kernel *kernels() { return list; }

void enlist(Kernel *k) {
  k->next = list;
  list = k;
}

int64_t static_shared(const Kernel *k) { return seen.count(k) ? seen[k] : 0; }

int run(const Launch &l, Rng &rng) {
  locate_with(where);
  fault_clear();
  launch = &l;
  threads.resize(static_cast<size_t>(l.block));
  declared = 0;
  std::vector<int32_t> order(static_cast<size_t>(l.grid));
  for (int32_t i = 0; i < l.grid; i++) order[static_cast<size_t>(i)] = i;
  rng.shuffle(order.data(), static_cast<uint32_t>(l.grid));
  for (int32_t b : order) {
    run_block(b, rng);
    if (fault()->status) break;
  }
  for (Thread &t : threads) fiber_drop(&t.fiber);
  if (declared > seen[l.kernel]) seen[l.kernel] = declared;
  for (auto &m : maps) munmap(m.first, m.second);
  maps.clear();
  slabs.clear();
  here = nullptr;
  return fault()->status;
}

void raise(int status, const char *what, const void *address, int line) {
  char place[120] = "", text[400];
  where(place, sizeof place);
  int n = snprintf(text, sizeof text, "%s%s", what, place);
  if (address) n += snprintf(text + n, sizeof text - n, ", address %p", address);
  if (line) snprintf(text + n, sizeof text - n, ", line %d", line);
  fiber_raise(status, text);
}

void barrier(int line) {
  Thread *t = self;
  t->state = AtBarrier;
  t->line = line;
  fiber_wait();
}

/* All lanes of t's mask wait in collect: do they in the same operation? */
static bool match(const Thread *t, int32_t base) {
  for (uint32_t m = t->mask; m; m &= m - 1) {
    const Thread &o = threads[static_cast<size_t>(base + __builtin_ctz(m))];
    if (o.mask != t->mask || o.combine != t->combine) return false;
  }
  return true;
}

void collect(uint32_t mask, Combine combine, void *mine, int line) {
  Thread *t = self;
  const int32_t base = t->place.tid & ~31;
  if (!(mask >> (t->place.tid & 31) & 1)) raise(719, "warp operation with a mask that leaves out the calling lane", nullptr, line);
  t->mask = mask;
  t->combine = combine;
  t->mine = mine;
  t->line = line;
  t->state = AtCollect;
  uint32_t &waiting = gathered[static_cast<size_t>(base / 32)];
  waiting |= uint32_t{1} << (t->place.tid & 31);
  if ((waiting & mask) != mask || !match(t, base)) {
    fiber_wait();
    return;
  }
  waiting &= ~mask;
  void *lane[32] = {};
  for (uint32_t m = mask; m; m &= m - 1) {
    Thread &o = threads[static_cast<size_t>(base + __builtin_ctz(m))];
    lane[__builtin_ctz(m)] = o.mine;
    o.state = Ready;
  }
  combine(lane, mask);
  fiber_wait(); /* the scheduler says who goes on first */
}

void *shared(const void *key, int64_t bytes) {
  auto it = slabs.find(key);
  if (it != slabs.end()) return it->second.mem;
  declared += bytes;
  if (declared > 48 << 10) raise(719, "more than 48 KiB of static shared memory", nullptr, 0);
  Slab s{guarded_memory(bytes), bytes};
  slabs[key] = s;
  return s.mem;
}

void *dynamic_shared() {
  static const char key = 0;
  auto it = slabs.find(&key);
  if (it != slabs.end()) return it->second.mem;
  Slab s{guarded_memory(launch->shared), launch->shared};
  slabs[&key] = s;
  return s.mem;
}

} // namespace dk
