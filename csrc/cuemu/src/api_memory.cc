/* Memory: device, pinned, copies, fills. */
#include "device.h"

using namespace dk;

static uintptr_t addr(const void *p) { return reinterpret_cast<uintptr_t>(p); }

DK_API cuMemGetInfo(size_t *free, size_t *total) {
  DK_CALL(Current);
  const size_t all = driver().set.memory, used = driver().used[static_cast<size_t>(call.ctx->device)];
  if (free) *free = all > used ? all - used : 0;
  if (total) *total = all;
  return CUDA_SUCCESS;
}
DK_ALSO(cuMemGetInfo);

DK_API cuMemAlloc(CUdeviceptr *ptr, size_t bytes) {
  DK_CALL(Current);
  Driver &d = driver();
  if (!ptr || !bytes) return fail(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes", __func__, bytes);
  size_t &used = d.used[static_cast<size_t>(call.ctx->device)];
  if (bytes > d.set.memory || used > d.set.memory - bytes)
    return fail(CUDA_ERROR_OUT_OF_MEMORY, "%s: %zu bytes, %zu of %zu are in use on device %d", __func__, bytes, used, d.set.memory, call.ctx->device);
  const Region *r = d.memory.take(bytes, Kind::Device, call.ctx->device, d.rng);
  if (!r) return fail(CUDA_ERROR_OUT_OF_MEMORY, "%s: no host memory for %zu bytes", __func__, bytes);
  used += bytes;
  if (d.memory_live() > d.peak) d.peak = d.memory_live();
  *ptr = r->base;
  return CUDA_SUCCESS;
}
DK_ALSO(cuMemAlloc);

DK_API cuMemFree(CUdeviceptr ptr) {
  DK_CALL(Current);
  Driver &d = driver();
  const Region *r = d.memory.exact(ptr);
  if (!r || r->kind != Kind::Device) return fail(CUDA_ERROR_INVALID_VALUE, "%s: 0x%llx is not the start of device memory", __func__, ptr);
  const Region was = *r;
  d.used[static_cast<size_t>(was.device)] -= was.size;
  if (d.memory.drop(ptr)) return CUDA_SUCCESS;
  call.ctx->lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "%s: bytes beside the allocation of %zu bytes were written", __func__, was.size);
}
DK_ALSO(cuMemFree);

DK_API cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr ptr) {
  DK_CALL(Current);
  const Region *r = driver().memory.range(ptr, 1);
  if (!r || r->kind != Kind::Device) return fail(CUDA_ERROR_INVALID_VALUE, "%s: 0x%llx is no device memory", __func__, ptr);
  if (base) *base = r->base;
  if (size) *size = r->size;
  return CUDA_SUCCESS;
}
DK_ALSO(cuMemGetAddressRange);

DK_API cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  DK_CALL(Init);
  const Region *r = driver().memory.range(ptr, 1);
  if (!r) return fail(CUDA_ERROR_INVALID_VALUE, "%s: 0x%llx is not known", __func__, ptr);
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<unsigned *>(data) = r->kind == Kind::Device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
    *static_cast<CUdeviceptr *>(data) = ptr;
  else
    return fail(CUDA_ERROR_INVALID_VALUE, "%s: attribute %d", __func__, static_cast<int>(attribute));
  return CUDA_SUCCESS;
}

static CUresult pinned(Call &call, void **p, size_t bytes) {
  if (!p || !bytes) return fail(CUDA_ERROR_INVALID_VALUE, "pinned memory: %zu bytes", bytes);
  const Region *r = driver().memory.take(bytes, Kind::Pinned, call.ctx->device, driver().rng);
  if (!r) return fail(CUDA_ERROR_OUT_OF_MEMORY, "pinned memory: no %zu bytes", bytes);
  *p = reinterpret_cast<void *>(r->base);
  return CUDA_SUCCESS;
}

DK_API cuMemHostAlloc(void **p, size_t bytes, unsigned int) {
  DK_CALL(Current);
  return pinned(call, p, bytes);
}

DK_API cuMemAllocHost_v2(void **p, size_t bytes) {
  DK_CALL(Current);
  return pinned(call, p, bytes);
}
DK_ALSO(cuMemAllocHost);

DK_API cuMemFreeHost(void *p) {
  DK_CALL(Current);
  const Region *r = driver().memory.exact(addr(p));
  if (!r || r->kind != Kind::Pinned) return fail(CUDA_ERROR_INVALID_VALUE, "%s: %p is not the start of pinned memory", __func__, p);
  const size_t size = r->size;
  if (driver().memory.drop(addr(p))) return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE, "%s: bytes beside the allocation of %zu bytes were written", __func__, size);
}

DK_API cuMemHostRegister_v2(void *p, size_t bytes, unsigned int) {
  DK_CALL(Current);
  if (!p || !bytes) return fail(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes at %p", __func__, bytes, p);
  for (auto &r : driver().memory.all())
    if (r.second.base < addr(p) + bytes && addr(p) < r.second.base + r.second.size)
      return fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "%s: %p lies in known memory", __func__, p);
  driver().memory.enlist(addr(p), bytes, call.ctx->device);
  return CUDA_SUCCESS;
}
DK_ALSO(cuMemHostRegister);

DK_API cuMemHostUnregister(void *p) {
  DK_CALL(Current);
  const Region *r = driver().memory.exact(addr(p));
  if (!r || r->kind != Kind::Registered) return fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "%s: %p is not registered", __func__, p);
  driver().memory.drop(addr(p));
  return CUDA_SUCCESS;
}

DK_API cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *p, unsigned int) {
  DK_CALL(Current);
  const Region *r = driver().memory.range(addr(p), 1);
  if (!r || r->kind == Kind::Device) return fail(CUDA_ERROR_INVALID_VALUE, "%s: %p is no pinned memory", __func__, p);
  *ptr = addr(p);
  return CUDA_SUCCESS;
}
DK_ALSO(cuMemHostGetDevicePointer);

/* Whether bytes at p are device memory of one allocation that ctx may touch. */
static CUresult device_side(const char *what, CUdeviceptr p, size_t bytes, const Context *ctx, bool any_device) {
  const Region *r = driver().memory.range(p, bytes);
  if (!r || r->kind != Kind::Device) {
    const Region *part = driver().memory.find(p);
    if (part) return fail(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes at byte %llu of an allocation of %zu", what, bytes, p - part->base, part->size);
    return fail(CUDA_ERROR_INVALID_VALUE, "%s: 0x%llx is no device memory", what, p);
  }
  if (!any_device && r->device != ctx->device && !ctx->peers.count(r->device))
    return fail(CUDA_ERROR_INVALID_VALUE, "%s: memory of device %d from device %d without peer access", what, r->device, ctx->device);
  return CUDA_SUCCESS;
}

static CUresult host_side(const char *what, const void *p, size_t bytes, bool async) {
  const Region *r = driver().memory.find(addr(p));
  if (!p && bytes) return fail(CUDA_ERROR_INVALID_VALUE, "%s: null host memory", what);
  if (r && r->kind == Kind::Device && addr(p) < r->base + r->size) return fail(CUDA_ERROR_INVALID_VALUE, "%s: %p is device memory", what, p);
  const bool pinned = driver().memory.range(addr(p), bytes) && r->kind != Kind::Device;
  if (async && !pinned && bytes) driver().count["pageable_copies"]++;
  return CUDA_SUCCESS;
}

/* Enqueues op; without a stream of this context it is refused. */
static CUresult behind(const char *what, Op op, CUstream stream, const Context *ctx) {
  Stream *s = driver().streams.get(stream);
  if (!s || s->context != ctx)
    return fail(CUDA_ERROR_INVALID_HANDLE, "%s: stream %p is none of this context; the default streams are refused", what, static_cast<void *>(stream));
  enqueue(s, std::move(op));
  return CUDA_SUCCESS;
}

static Op copy_op(void *dst, const void *src, size_t bytes, Way way) {
  Op op{Do::Copy};
  op.dst = dst;
  op.src = src;
  op.bytes = bytes;
  op.way = way;
  return op;
}

static void *at(CUdeviceptr p) { return reinterpret_cast<void *>(static_cast<uintptr_t>(p)); }

DK_API cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t bytes) {
  DK_CALL(Current);
  if (CUresult r = device_side(__func__, dst, bytes, call.ctx, false)) return r;
  if (CUresult r = host_side(__func__, src, bytes, false)) return r;
  Op op = copy_op(at(dst), src, bytes, Way::ToDevice);
  return perform(op, call.ctx);
}
DK_ALSO(cuMemcpyHtoD);

DK_API cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t bytes) {
  DK_CALL(Current);
  if (CUresult r = device_side(__func__, src, bytes, call.ctx, false)) return r;
  if (CUresult r = host_side(__func__, dst, bytes, false)) return r;
  Op op = copy_op(dst, at(src), bytes, Way::ToHost);
  return perform(op, call.ctx);
}
DK_ALSO(cuMemcpyDtoH);

/* Whether p, which is device memory, is of the device of a context. */
static CUresult device_of(const char *what, CUdeviceptr p, CUcontext c) {
  const Context *ctx = driver().context(c);
  if (!ctx) return fail(CUDA_ERROR_INVALID_CONTEXT, "%s: no such context", what);
  const Region *r = driver().memory.find(p);
  if (r && r->kind == Kind::Device && r->device != ctx->device)
    return fail(CUDA_ERROR_INVALID_VALUE, "%s: memory of device %d with a context of device %d", what, r->device, ctx->device);
  return CUDA_SUCCESS;
}

/* On one device, or between devices with peer access. */
static CUresult device_copy(const char *what, CUdeviceptr dst, CUdeviceptr src, size_t bytes, const Context *ctx, bool any, Op *op) {
  if (CUresult r = device_side(what, dst, bytes, ctx, any)) return r;
  if (CUresult r = device_side(what, src, bytes, ctx, any)) return r;
  const bool same = driver().memory.find(dst)->device == driver().memory.find(src)->device;
  *op = copy_op(at(dst), at(src), bytes, same ? Way::OnDevice : Way::Between);
  return CUDA_SUCCESS;
}

DK_API cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  DK_CALL(Current);
  Op op{Do::Copy};
  if (CUresult r = device_copy(__func__, dst, src, bytes, call.ctx, false, &op)) return r;
  return perform(op, call.ctx);
}
DK_ALSO(cuMemcpyDtoD);

DK_API cuMemcpyPeer(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t bytes) {
  DK_CALL(Current);
  if (CUresult r = device_of(__func__, dst, dc)) return r;
  if (CUresult r = device_of(__func__, src, sc)) return r;
  Op op{Do::Copy};
  if (CUresult r = device_copy(__func__, dst, src, bytes, call.ctx, true, &op)) return r;
  return perform(op, call.ctx);
}

DK_API cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
  DK_CALL(Current);
  if (CUresult r = device_side(__func__, dst, bytes, call.ctx, false)) return r;
  if (CUresult r = host_side(__func__, src, bytes, true)) return r;
  return behind(__func__, copy_op(at(dst), src, bytes, Way::ToDevice), stream, call.ctx);
}
DK_ALSO(cuMemcpyHtoDAsync);

DK_API cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  DK_CALL(Current);
  if (CUresult r = device_side(__func__, src, bytes, call.ctx, false)) return r;
  if (CUresult r = host_side(__func__, dst, bytes, true)) return r;
  return behind(__func__, copy_op(dst, at(src), bytes, Way::ToHost), stream, call.ctx);
}
DK_ALSO(cuMemcpyDtoHAsync);

DK_API cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  DK_CALL(Current);
  Op op{Do::Copy};
  if (CUresult r = device_copy(__func__, dst, src, bytes, call.ctx, false, &op)) return r;
  return behind(__func__, op, stream, call.ctx);
}
DK_ALSO(cuMemcpyDtoDAsync);

DK_API cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t bytes, CUstream stream) {
  DK_CALL(Current);
  if (CUresult r = device_of(__func__, dst, dc)) return r;
  if (CUresult r = device_of(__func__, src, sc)) return r;
  Op op{Do::Copy};
  if (CUresult r = device_copy(__func__, dst, src, bytes, call.ctx, true, &op)) return r;
  return behind(__func__, op, stream, call.ctx);
}

/* Either kind of memory on both sides: what unified addresses allow. */
static CUresult unified(const char *what, CUdeviceptr dst, CUdeviceptr src, size_t bytes, const Context *ctx, bool async, Op *op) {
  auto on_device = [](CUdeviceptr p) {
    const Region *r = driver().memory.find(p);
    return r && r->kind == Kind::Device;
  };
  const bool to = on_device(dst), from = on_device(src);
  if (to && from) return device_copy(what, dst, src, bytes, ctx, false, op);
  if (!to && !from) return fail(CUDA_ERROR_INVALID_VALUE, "%s: neither side is device memory", what);
  if (CUresult r = device_side(what, to ? dst : src, bytes, ctx, false)) return r;
  if (CUresult r = host_side(what, at(to ? src : dst), bytes, async)) return r;
  *op = copy_op(at(dst), at(src), bytes, to ? Way::ToDevice : Way::ToHost);
  return CUDA_SUCCESS;
}

DK_API cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  DK_CALL(Current);
  Op op{Do::Copy};
  if (CUresult r = unified(__func__, dst, src, bytes, call.ctx, false, &op)) return r;
  return perform(op, call.ctx);
}

DK_API cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  DK_CALL(Current);
  Op op{Do::Copy};
  if (CUresult r = unified(__func__, dst, src, bytes, call.ctx, true, &op)) return r;
  return behind(__func__, op, stream, call.ctx);
}

static CUresult set_op(const char *what, CUdeviceptr dst, uint32_t value, int width, size_t n, const Context *ctx, Op *op) {
  const size_t bytes = n * static_cast<size_t>(width);
  if (dst % static_cast<unsigned>(width)) return fail(CUDA_ERROR_INVALID_VALUE, "%s: 0x%llx is not aligned to %d", what, dst, width);
  if (CUresult r = device_side(what, dst, bytes, ctx, false)) return r;
  op->dst = at(dst);
  op->bytes = bytes;
  op->value = value;
  op->width = width;
  return CUDA_SUCCESS;
}

#define DK_MEMSET(bits, type)                                                                      \
  DK_API cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t n) {                             \
    DK_CALL(Current);                                                                              \
    Op op{Do::Set};                                                                                \
    if (CUresult r = set_op(__func__, dst, value, bits / 8, n, call.ctx, &op)) return r;           \
    return perform(op, call.ctx);                                                                  \
  }                                                                                                \
  DK_ALSO(cuMemsetD##bits);                                                                        \
  DK_API cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t n, CUstream stream) {          \
    DK_CALL(Current);                                                                              \
    Op op{Do::Set};                                                                                \
    if (CUresult r = set_op(__func__, dst, value, bits / 8, n, call.ctx, &op)) return r;           \
    return behind(__func__, op, stream, call.ctx);                                                \
  }
DK_MEMSET(8, unsigned char)
DK_MEMSET(16, unsigned short)
DK_MEMSET(32, unsigned int)
