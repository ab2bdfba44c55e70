#include "memory.h"

#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace dk {
namespace {

constexpr size_t kWindow = size_t{1} << 38; /* of addresses, reserved at a time */
constexpr size_t kMargin = size_t{1} << 28; /* of them in front of the first allocation */
constexpr unsigned char kFresh = 0xff;      /* float: NaN */
constexpr size_t kAlign = 256;

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

} // namespace

/* n bytes of whole pages, never given out before, with a guard page behind. */
char *Memory::pages(size_t n) {
  for (auto &w : windows_) {
    Window &v = w.second;
    if (v.size - v.used >= n + page()) {
      char *m = v.mem + v.used;
      if (mprotect(m, n, PROT_READ | PROT_WRITE)) return nullptr;
      v.used += n + page();
      return m;
    }
  }
  for (size_t size = kWindow; size >= n + 2 * page() && size >= (size_t{1} << 24); size /= 4) {
    void *m = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) continue;
    windows_[reinterpret_cast<uintptr_t>(m)] = Window{static_cast<char *>(m), size, size > 4 * kMargin ? kMargin : page()};
    return pages(n);
  }
  return nullptr;
}

const Region *Memory::take(size_t n, Kind kind, int device, Rng &rng) {
  const size_t slot = up(n, kAlign), whole = up(slot, page());
  char *m = pages(whole);
  if (!m) return nullptr;
  memset(m, kFresh, whole);
  uintptr_t base = reinterpret_cast<uintptr_t>(m) + (rng.next() & 1 ? whole - slot : 0);
  return &(regions_[base] = Region{base, n, kind, device, m, whole});
}

const Region *Memory::enlist(uintptr_t base, size_t n, int device) {
  return &(regions_[base] = Region{base, n, Kind::Registered, device, nullptr, 0});
}

bool Memory::intact(const Region &r) const {
  if (!r.map) return true;
  auto fresh = [](const char *p, const char *end) { /* all bytes equal, and the first one right */
    return p == end || (static_cast<unsigned char>(*p) == kFresh && !memcmp(p, p + 1, static_cast<size_t>(end - p) - 1));
  };
  const char *base = reinterpret_cast<const char *>(r.base);
  return fresh(r.map, base) && fresh(base + r.size, r.map + r.mapped);
}

bool Memory::drop(uintptr_t base) {
  auto it = regions_.find(base);
  bool good = intact(it->second);
  if (it->second.map)
    mmap(it->second.map, it->second.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  regions_.erase(it);
  return good;
}

const Region *Memory::find(uintptr_t addr) const {
  auto it = regions_.upper_bound(addr);
  if (it == regions_.begin()) return nullptr;
  const Region &r = (--it)->second;
  return addr - r.base <= r.size ? &r : nullptr;
}

const Region *Memory::range(uintptr_t addr, size_t n) const {
  const Region *r = find(addr);
  return r && n <= r->size - (addr - r->base) ? r : nullptr;
}

const Region *Memory::exact(uintptr_t base) const {
  auto it = regions_.find(base);
  return it == regions_.end() ? nullptr : &it->second;
}

bool Memory::ours(uintptr_t addr) const {
  auto it = windows_.upper_bound(addr);
  if (it == windows_.begin()) return false;
  const Window &w = (--it)->second;
  return addr - reinterpret_cast<uintptr_t>(w.mem) < w.used;
}

void Memory::clear() {
  while (!regions_.empty()) drop(regions_.begin()->first);
}

} // namespace dk
