package kernels

import "math"

// DropKey is the key of one dropout mask: every (seed, epoch, layer) has its own.
func DropKey(seed uint64, epoch, layer int) uint64 {
	k := mix64(seed + 0x9e3779b97f4a7c15)
	k = mix64(k ^ uint64(epoch)*0xbf58476d1ce4e5b9)
	return mix64(k ^ (uint64(layer)+1)*0x94d049bb133111eb)
}

// DropRow is the part of the mask that a row's values share.
func DropRow(key uint64, id int32) uint64 {
	return mix64(key ^ (uint64(uint32(id))+1)*0x9e3779b97f4a7c15)
}

// DropKeep says whether the value in column col of a row survives: the 32-bit
// hash of (row, col) is at least threshold. This integer formula is the same,
// bit for bit, on every device.
func DropKeep(row uint64, col uint32, threshold uint32) bool {
	x := col*0x9e3779b1 + uint32(row)
	x ^= x >> 16
	x *= 0x85ebca6b
	x ^= uint32(row >> 32)
	x ^= x >> 13
	x *= 0xc2b2ae35
	x ^= x >> 16
	return x >= threshold
}

// Threshold is the hash below which a value is dropped: P·2³², rounded.
func (d Dropout) Threshold() uint32 {
	t := math.Round(float64(d.P) * (1 << 32))
	return uint32(min(t, math.MaxUint32))
}

// KeepScale is 1/(1-P), the factor of the values that survive.
func (d Dropout) KeepScale() float32 { return 1 / (1 - d.P) }

// mix64 is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix64(z uint64) uint64 {
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	return z ^ z>>31
}
