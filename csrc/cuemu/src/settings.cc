/* Settings, injected faults and counters: marker.h. */
#include "../marker.h"

#include "device.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <unistd.h>

/* Written by build.sh. */
extern "C" const char dk_kernel_hash[], dk_marker[];

#define DK_MARK extern "C" __attribute__((visibility("default")))

namespace dk {
namespace {

std::string last_detail;

/* "cuMemAlloc_v2" is counted as "cuMemAlloc". */
std::string plain(const char *entry) {
  std::string s = entry;
  size_t n = s.size();
  if (n > 3 && s[n - 3] == '_' && s[n - 2] == 'v') s.resize(n - 3);
  return s;
}

bool whole(const std::string &s, int64_t *v) {
  if (s.empty()) return false;
  char *end;
  *v = strtoll(s.c_str(), &end, 10);
  return !*end;
}

/* CALL[@N][+]:EFFECT */
std::string inject(const std::string &text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return "fault=" + text + ": want CALL[@N][+]:EFFECT";
  std::string call = text.substr(0, colon), effect = text.substr(colon + 1);
  Injected f{call, 1, false, {}};
  if (f.call.back() == '+') {
    f.always = true;
    f.call.pop_back();
  }
  size_t at = f.call.find('@');
  if (at != std::string::npos) {
    if (!whole(f.call.substr(at + 1), &f.from) || f.from < 1) return "fault=" + text + ": count after @ must be 1 or more";
    f.call.resize(at);
  }
  int64_t v;
  if (effect == "hang") {
    f.effect.kind = Effect::Hang;
  } else if (effect.rfind("slow/", 0) == 0 && whole(effect.substr(5), &v) && v >= 0) {
    f.effect = {};
    f.effect.kind = Effect::Slow;
    f.effect.value = static_cast<int>(v);
  } else if (whole(effect, &v) && v > 0 && v < 1000) {
    f.effect.kind = Effect::Status;
    f.effect.value = static_cast<int>(v);
  } else {
    return "fault=" + text + ": effect must be a status from 1 to 999, hang, or slow/MS";
  }
  driver().faults.push_back(f);
  return "";
}

std::string setting(const std::string &key, const std::string &value) {
  Settings &s = driver().set;
  if (key == "reset") {
    reset();
    return "";
  }
  if (key == "fault") return inject(value);
  int64_t v = 0;
  if (key == "cc") {
    if (sscanf(value.c_str(), "%d.%d", &s.major, &s.minor) != 2) return "cc=" + value + ": want MAJOR.MINOR";
    return "";
  }
  if (!whole(value, &v) || v < 0) return key + "=" + value + ": want a whole number";
  if (key == "seed") {
    s.seed = static_cast<uint64_t>(v);
    driver().rng.state = s.seed;
  } else if (key == "devices") {
    if (v > 16) return "devices=" + value + ": at most 16";
    s.devices = static_cast<int>(v);
  } else if (key == "memory") {
    s.memory = static_cast<size_t>(v);
  } else if (key == "driver") {
    s.driver = static_cast<int>(v);
  } else if (key == "peer") {
    s.peer = v;
  } else if (key == "terminated") {
    s.terminated = v;
  } else if (key == "early") {
    if (v > 100) return "early=" + value + ": a percentage";
    s.early = static_cast<int>(v);
  } else {
    return key + ": no such setting; there are reset seed devices memory cc driver peer terminated early fault";
  }
  return "";
}

/* Reads the environment once; the lock is held. */
void first_settings() {
  Driver &d = driver();
  if (d.configured) return;
  d.configured = true;
  if (const char *env = getenv("DORYLUS_CUEMU")) {
    d.complaint = configure(env);
    if (!d.complaint.empty()) fprintf(stderr, "libcuemu: DORYLUS_CUEMU: %s\n", d.complaint.c_str());
  }
}

} // namespace

std::string configure(const char *spec) {
  driver().configured = true;
  std::string all = spec;
  for (size_t at = 0; at < all.size();) {
    size_t end = all.find(';', at);
    if (end == std::string::npos) end = all.size();
    std::string entry = all.substr(at, end - at);
    at = end + 1;
    while (!entry.empty() && entry.front() == ' ') entry.erase(0, 1);
    while (!entry.empty() && entry.back() == ' ') entry.pop_back();
    if (entry.empty()) continue;
    size_t eq = entry.find('=');
    std::string wrong = eq == std::string::npos ? setting(entry, "") : setting(entry.substr(0, eq), entry.substr(eq + 1));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

CUresult fail(int status, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  last_detail = text;
  return static_cast<CUresult>(status);
}

const std::string &detail() { return last_detail; }

Effect injected(const char *call) {
  Effect e;
  for (Injected &f : driver().faults) {
    if (f.call != call) continue;
    f.count++;
    if (f.count == f.from || (f.always && f.count > f.from)) e = f.effect;
  }
  return e;
}

Call::Call(const char *entry, Need need) : lock(driver().mu) {
  Driver &d = driver();
  first_settings();
  std::string name = plain(entry);
  d.count["calls"]++;
  d.count["calls/" + name]++;
  Effect e = injected(name.c_str());
  if (e.kind == Effect::Hang) {
    lock.unlock();
    for (;;) pause();
  }
  if (e.kind == Effect::Slow) {
    lock.unlock();
    timespec t{e.value / 1000, e.value % 1000 * 1000000L};
    nanosleep(&t, nullptr);
    lock.lock();
  }
  if (need != Nothing && !d.initialised) {
    status = fail(CUDA_ERROR_NOT_INITIALIZED, "%s before cuInit", entry);
    return;
  }
  if (need == Current) {
    ctx = current();
    if (!ctx) {
      status = fail(CUDA_ERROR_INVALID_CONTEXT, "%s: no current context on this thread", entry);
      return;
    }
    if (ctx->lost) {
      status = static_cast<CUresult>(ctx->lost);
      return;
    }
  }
  if (e.kind == Effect::Status) {
    status = fail(e.value, "%s: injected", entry);
    if (ctx && fatal(e.value)) ctx->lost = e.value;
  }
}

} // namespace dk

using namespace dk;

extern "C" __attribute__((visibility("default"))) const int dorylus_cuda_emulated_device = 1;
DK_MARK const char *dorylus_cuemu_marker(void) { return dk_marker; }
DK_MARK const char *dorylus_cuemu_kernels(void) { return dk_kernel_hash; }

DK_MARK const char *dorylus_cuemu_kernel(int i) {
  const Kernel *k = kernels();
  while (k && i-- > 0) k = k->next;
  return k ? k->name : nullptr;
}

DK_MARK const char *dorylus_cuemu_signature(const char *kernel) {
  for (const Kernel *k = kernels(); k; k = k->next)
    if (!strcmp(k->name, kernel)) return k->types;
  return nullptr;
}

DK_MARK int dorylus_cuemu_configure(const char *spec) {
  std::lock_guard<std::recursive_mutex> lock(driver().mu);
  std::string wrong = configure(spec);
  if (wrong.empty()) return 0;
  fail(1, "%s", wrong.c_str());
  return 1;
}

DK_MARK int64_t dorylus_cuemu_counter(const char *name) {
  Driver &d = driver();
  std::lock_guard<std::recursive_mutex> lock(d.mu);
  const std::string n = name;
  size_t contexts = 0, allocations = 0, pinned = 0;
  for (auto &c : d.primary) contexts += c != nullptr;
  for (auto &r : d.memory.all()) {
    allocations += r.second.kind == Kind::Device;
    pinned += r.second.kind != Kind::Device ? r.second.size : 0;
  }
  const std::pair<const char *, size_t> live[] = {
      {"memory_live", d.memory_live()}, {"memory_peak", d.peak},         {"allocations_live", allocations},
      {"pinned_live", pinned},          {"streams_live", d.streams.size()}, {"events_live", d.events.size()},
      {"modules_live", d.modules.size()}, {"contexts_live", contexts},     {"work_pending", pending()}};
  for (auto &l : live)
    if (n == l.first) return static_cast<int64_t>(l.second);
  auto it = d.count.find(n);
  if (it != d.count.end()) return it->second;
  for (const char *known : {"launches", "calls", "bytes_to_device", "bytes_to_host", "bytes_on_device",
                            "bytes_between_devices", "pageable_copies"})
    if (n == known) return 0;
  if (n.rfind("calls/", 0) == 0) return 0;
  if (n.rfind("launches/", 0) == 0 && dorylus_cuemu_signature(name + 9)) return 0;
  return -1;
}

DK_MARK void dorylus_cuemu_counters_reset(void) {
  Driver &d = driver();
  std::lock_guard<std::recursive_mutex> lock(d.mu);
  d.count.clear();
  d.peak = d.memory_live();
}

DK_MARK const char *dorylus_cuemu_detail(void) {
  thread_local std::string mine;
  std::lock_guard<std::recursive_mutex> lock(driver().mu);
  mine = detail();
  return mine.c_str();
}
