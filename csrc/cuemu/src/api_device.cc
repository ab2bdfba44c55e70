/* Driver, devices, contexts. */
#include "device.h"

#include <cstdio>

using namespace dk;

static bool have(CUdevice dev) { return dev >= 0 && dev < driver().set.devices; }
#define DK_DEVICE_OR_FAIL(dev) \
  if (!have(dev)) return fail(CUDA_ERROR_INVALID_DEVICE, "%s: device %d of %d", __func__, dev, driver().set.devices)

DK_API cuInit(unsigned int flags) {
  DK_CALL(Nothing);
  Driver &d = driver();
  if (!d.complaint.empty()) return fail(CUDA_ERROR_INVALID_VALUE, "DORYLUS_CUEMU: %s", d.complaint.c_str());
  if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "cuInit: flags %u, must be 0", flags);
  if (!d.set.devices) return fail(CUDA_ERROR_NO_DEVICE, "cuInit: devices=0");
  if (d.initialised) return CUDA_SUCCESS;
  d.initialised = true;
  d.used.assign(static_cast<size_t>(d.set.devices), 0);
  d.primary.clear();
  d.primary.resize(static_cast<size_t>(d.set.devices));
  return CUDA_SUCCESS;
}

DK_API cuDriverGetVersion(int *version) {
  DK_CALL(Nothing);
  if (!version) return fail(CUDA_ERROR_INVALID_VALUE, "%s: null result", __func__);
  *version = driver().set.driver;
  return CUDA_SUCCESS;
}

DK_API cuDeviceGetCount(int *count) {
  DK_CALL(Init);
  *count = driver().set.devices;
  return CUDA_SUCCESS;
}

DK_API cuDeviceGet(CUdevice *device, int ordinal) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(ordinal);
  *device = ordinal;
  return CUDA_SUCCESS;
}

DK_API cuDeviceGetName(char *name, int len, CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  if (len <= 0) return fail(CUDA_ERROR_INVALID_VALUE, "%s: length %d", __func__, len);
  snprintf(name, static_cast<size_t>(len), "Dorylus emulated device");
  return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *u, CUdevice dev) {
  memcpy(u->bytes, "dorylus-cuemu--", 15);
  u->bytes[15] = static_cast<char>(dev);
  return CUDA_SUCCESS;
}

DK_API cuDeviceGetUuid(CUuuid *u, CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  return uuid(u, dev);
}

DK_API cuDeviceGetUuid_v2(CUuuid *u, CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  return uuid(u, dev);
}

DK_API cuDeviceGetPCIBusId(char *id, int len, CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  if (len <= 0) return fail(CUDA_ERROR_INVALID_VALUE, "%s: length %d", __func__, len);
  snprintf(id, static_cast<size_t>(len), "0000:%02x:00.0", dev + 1);
  return CUDA_SUCCESS;
}

DK_API cuDeviceTotalMem(size_t *bytes, CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  *bytes = driver().set.memory;
  return CUDA_SUCCESS;
}
DK_ALSO(cuDeviceTotalMem);

DK_API cuDeviceGetAttribute(int *value, CUdevice_attribute attrib, CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  const Settings &s = driver().set;
  switch (static_cast<int>(attrib)) {
  case 1: *value = 1024; break;                /* threads per block */
  case 2: case 3: *value = 1024; break;        /* block dimensions */
  case 4: *value = 64; break;
  case 5: *value = 0x7fffffff; break;          /* grid dimensions */
  case 6: case 7: *value = 65535; break;
  case 8: *value = 48 << 10; break;            /* shared memory per block */
  case 9: *value = 64 << 10; break;            /* constant memory */
  case 10: *value = 32; break;                 /* warp */
  case 11: *value = 0x7fffffff; break;         /* pitch */
  case 12: case 82: *value = 64 << 10; break;  /* registers per block, per multiprocessor */
  case 13: *value = 1000000; break;            /* clock, kHz */
  case 14: *value = 512; break;                /* texture alignment */
  case 15: case 19: case 31: case 41: case 78: *value = 1; break; /* overlap, mapping, concurrent kernels, unified
                                                                     addresses, stream priorities */
  case 16: *value = 4; break;                  /* multiprocessors */
  case 33: *value = dev + 1; break;            /* PCI bus */
  case 36: *value = 1000000; break;            /* memory clock, kHz */
  case 37: *value = 256; break;                /* memory bus, bits */
  case 38: *value = 4 << 20; break;            /* L2 cache */
  case 39: *value = 2048; break;               /* threads per multiprocessor */
  case 40: *value = 2; break;                  /* copy engines */
  case 75: *value = s.major; break;
  case 76: *value = s.minor; break;
  case 81: *value = 100 << 10; break;          /* shared memory per multiprocessor */
  case 97: *value = 99 << 10; break;           /* shared memory per block, on request */
  default:
    if (static_cast<int>(attrib) < 1 || static_cast<int>(attrib) > 140)
      return fail(CUDA_ERROR_INVALID_VALUE, "%s: attribute %d", __func__, static_cast<int>(attrib));
    *value = 0;
  }
  return CUDA_SUCCESS;
}

DK_API cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  DK_DEVICE_OR_FAIL(peer);
  *can = driver().set.peer && dev != peer;
  return CUDA_SUCCESS;
}

DK_API cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice src, CUdevice dst) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(src);
  DK_DEVICE_OR_FAIL(dst);
  *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED && driver().set.peer && src != dst;
  return CUDA_SUCCESS;
}

DK_API cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  auto &slot = driver().primary[static_cast<size_t>(dev)];
  if (!slot) {
    slot = std::make_unique<Context>();
    slot->handle = reinterpret_cast<CUcontext>(new_handle());
    slot->device = dev;
  }
  slot->retained++;
  *ctx = slot->handle;
  return CUDA_SUCCESS;
}

/* Takes everything down that belongs to a device's context. */
static void destroy(int dev) {
  Driver &d = driver();
  auto &slot = d.primary[static_cast<size_t>(dev)];
  Context *c = slot.get();
  auto drop = [&](auto &table, auto belongs) {
    for (auto it = table.all().begin(); it != table.all().end();)
      it = belongs(*it->second) ? table.all().erase(it) : std::next(it);
  };
  for (auto &e : d.events.all()) /* another device's event may point to a stream of this one */
    if (e.second->last && !e.second->last->done && e.second->last->stream->context == c) e.second->last.reset();
  for (auto &s : d.streams.all())
    for (Op &op : s.second->work)
      if (op.what == Do::Wait && !op.ticket->done && op.ticket->stream->context == c) op.ticket->done = true;
  drop(d.functions, [&](Function &f) { return f.module->context == c; });
  drop(d.modules, [&](Module &m) { return m.context == c; });
  drop(d.events, [&](Event &e) { return e.context == c; });
  drop(d.streams, [&](Stream &s) { return s.context == c; });
  for (auto it = d.orphans.begin(); it != d.orphans.end();) it = (*it)->context == c ? d.orphans.erase(it) : std::next(it);
  std::vector<uintptr_t> memory;
  for (auto &r : d.memory.all())
    if (r.second.device == dev) memory.push_back(r.first);
  for (uintptr_t base : memory) d.memory.drop(base);
  d.used[static_cast<size_t>(dev)] = 0;
  slot.reset();
}

DK_API cuDevicePrimaryCtxRelease(CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  Context *c = driver().primary[static_cast<size_t>(dev)].get();
  if (!c) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: device %d has no context", __func__, dev);
  if (--c->retained) return CUDA_SUCCESS;
  if (!c->lost) run_everything(c);
  destroy(dev);
  return CUDA_SUCCESS;
}
DK_ALSO(cuDevicePrimaryCtxRelease);

DK_API cuDevicePrimaryCtxReset(CUdevice dev) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  if (driver().primary[static_cast<size_t>(dev)]) destroy(dev);
  return CUDA_SUCCESS;
}
DK_ALSO(cuDevicePrimaryCtxReset);

DK_API cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  return CUDA_SUCCESS;
}
DK_ALSO(cuDevicePrimaryCtxSetFlags);

DK_API cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
  DK_CALL(Init);
  DK_DEVICE_OR_FAIL(dev);
  *flags = 0;
  *active = driver().primary[static_cast<size_t>(dev)] != nullptr;
  return CUDA_SUCCESS;
}

DK_API cuCtxSetCurrent(CUcontext ctx) {
  DK_CALL(Init);
  if (ctx && !driver().context(ctx)) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: %p is no context", __func__, static_cast<void *>(ctx));
  set_current(ctx);
  return CUDA_SUCCESS;
}

DK_API cuCtxGetCurrent(CUcontext *ctx) {
  DK_CALL(Init);
  *ctx = current_handle();
  return CUDA_SUCCESS;
}

DK_API cuCtxPushCurrent(CUcontext ctx) {
  DK_CALL(Init);
  if (!driver().context(ctx)) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: %p is no context", __func__, static_cast<void *>(ctx));
  context_stack().push_back(ctx);
  return CUDA_SUCCESS;
}
DK_ALSO(cuCtxPushCurrent);

DK_API cuCtxPopCurrent(CUcontext *ctx) {
  DK_CALL(Init);
  if (context_stack().empty()) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: nothing is current", __func__);
  if (ctx) *ctx = context_stack().back();
  context_stack().pop_back();
  return CUDA_SUCCESS;
}
DK_ALSO(cuCtxPopCurrent);

DK_API cuCtxGetDevice(CUdevice *device) {
  DK_CALL(Init);
  Context *c = current();
  if (!c) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: no current context on this thread", __func__);
  *device = c->device;
  return CUDA_SUCCESS;
}

DK_API cuCtxGetFlags(unsigned int *flags) {
  DK_CALL(Current);
  *flags = 0;
  return CUDA_SUCCESS;
}

DK_API cuCtxGetApiVersion(CUcontext, unsigned int *version) {
  DK_CALL(Init);
  *version = 3020;
  return CUDA_SUCCESS;
}

DK_API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  DK_CALL(Current);
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

DK_API cuCtxSynchronize(void) {
  DK_CALL(Current);
  return run_everything(call.ctx);
}

DK_API cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  DK_CALL(Current);
  Context *p = driver().context(peer);
  if (!p) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: no such context", __func__);
  if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "%s: flags %u, must be 0", __func__, flags);
  if (!driver().set.peer || p == call.ctx)
    return fail(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "%s: device %d cannot reach device %d", __func__, call.ctx->device, p->device);
  if (!call.ctx->peers.insert(p->device).second)
    return fail(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "%s: device %d already reaches device %d", __func__, call.ctx->device, p->device);
  return CUDA_SUCCESS;
}

DK_API cuCtxDisablePeerAccess(CUcontext peer) {
  DK_CALL(Current);
  Context *p = driver().context(peer);
  if (!p) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: no such context", __func__);
  if (!call.ctx->peers.erase(p->device)) return fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "%s: it is not enabled", __func__);
  return CUDA_SUCCESS;
}
