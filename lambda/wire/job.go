package wire

import (
	"fmt"

	"dorylus/engine/model"
	"dorylus/lambda/codec"
)

// Job is the graph server's first message: what to build.
type Job struct {
	// Run is another for every run: what a worker keeps of one counts for no other.
	Run   string       `json:"run"`
	Model model.Config `json:"model"`
	// Steps is the number of the program's steps: a check that both sides build the
	// same one.
	Steps int `json:"steps"`
	// Precision of floats in results: "fp32", "bf16", "fp16".
	Precision string `json:"precision"`
	// Codec of all frames: "auto", "none", "s2", "zstd".
	Codec string `json:"codec"`
}

// Encoder is what both sides of a job make frames with.
func (j *Job) Encoder() (*codec.Encoder, error) {
	precision, err := codec.ParseWire(j.Precision)
	if err != nil {
		return nil, err
	}
	for c := codec.Auto; c <= codec.ZSTD; c++ {
		if c.String() == j.Codec {
			return codec.NewEncoder(codec.Options{Wire: precision, Codec: c})
		}
	}
	return nil, fmt.Errorf("wire codec %q: want auto, none, s2 or zstd", j.Codec)
}
