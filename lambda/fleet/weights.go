package fleet

import (
	"sync"

	"dorylus/kernels"
	"dorylus/lambda/codec"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
)

// weightFrames are the frames of parameters, made once for all workers.
type weightFrames struct {
	enc *codec.Encoder
	mu  sync.Mutex
	of  map[int][]*weightFrame // by parameter, newest last
}

type weightFrame struct {
	hash uint64
	once sync.Once
	data []byte
}

// keptFrames is how many versions of a parameter are kept: an async run works with more
// than one.
const keptFrames = 4

// weightKeys is where the codec's keys of weights begin, beyond those of gradients.
const weightKeys = 1 << 33

// frame is the frame of a parameter of the content that w names. m is read only if it
// has not been made yet. Nobody may change it.
func (k *weightFrames) frame(w wire.Weight, m *kernels.Mat) []byte {
	f := k.find(w)
	f.once.Do(func() { f.data = k.enc.Append(nil, shard.Key(w.Param, true)+weightKeys, m) })
	return f.data
}

func (k *weightFrames) find(w wire.Weight) *weightFrame {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.of[w.Param]
	for _, f := range list {
		if f.hash == w.Hash {
			return f
		}
	}
	if len(list) == keptFrames {
		list = list[1:]
	}
	f := &weightFrame{hash: w.Hash}
	k.of[w.Param] = append(list, f)
	return f
}
