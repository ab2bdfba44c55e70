package sink

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"os"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"dorylus/engine"
)

// TensorBoard writes an event file with the scalars loss/train, loss/val,
// acc/train, acc/val, acc/test and time/epoch_seconds, lr and grad_norm where they are
// known, and another metric as roc-auc/train and so on. The step is the number of
// epochs done.
type TensorBoard struct {
	w     io.Writer
	close func() error
	now   func() time.Time
	fail  *failure
}

// NewTensorBoard writes to w with wall times of now.
func NewTensorBoard(w io.Writer, now func() time.Time, warn func(error)) *TensorBoard {
	t := &TensorBoard{w: w, close: func() error { return nil }, now: now, fail: newFailure("write TensorBoard events", warn)}
	version := protowire.AppendTag(nil, eventFileVersion, protowire.BytesType)
	t.record(protowire.AppendString(version, "brain.Event:2"))
	return t
}

// CreateTensorBoard makes the file at path. TensorBoard reads all files of a
// folder whose name contains "tfevents", so a resumed run adds one.
func CreateTensorBoard(path string, now func() time.Time, warn func(error)) (*TensorBoard, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	t := NewTensorBoard(f, now, warn)
	t.fail.what = "write " + path
	t.close = f.Close
	return t, nil
}

// Field numbers of tensorflow.Event and what it holds.
const (
	eventWallTime    = 1 // double
	eventStep        = 2 // int64
	eventFileVersion = 3 // string
	eventSummary     = 5 // Summary
	summaryValue     = 1 // repeated Value
	valueTag         = 1 // string
	valueSimple      = 2 // float
)

// Event implements engine.Listener.
func (t *TensorBoard) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.EpochDone:
		t.scalar("loss/train", e.Epoch+1, e.Loss)
		t.scalar("time/epoch_seconds", e.Epoch+1, e.Took)
		if e.LR > 0 {
			t.scalar("lr", e.Epoch+1, e.LR)
		}
		if e.GradNorm > 0 {
			t.scalar("grad_norm", e.Epoch+1, e.GradNorm)
		}
	case engine.Evaluated:
		if named(&e) {
			t.split(e.Metric, e.Epoch+1, e.Train, e.Val, e.Test)
			t.split("acc", e.Epoch+1, e.TrainAcc, e.ValAcc, e.TestAcc)
		} else {
			t.split("acc", e.Epoch+1, e.Train, e.Val, e.Test)
		}
		t.scalar("loss/val", e.Epoch+1, e.ValLoss)
	}
}

// split writes a value per set of rows.
func (t *TensorBoard) split(name string, step int, train, val, test float64) {
	t.scalar(name+"/train", step, train)
	t.scalar(name+"/val", step, val)
	t.scalar(name+"/test", step, test)
}

// scalar writes one value; what was not measured is left out.
func (t *TensorBoard) scalar(tag string, step int, x float64) {
	if math.IsNaN(x) {
		return
	}
	value := protowire.AppendTag(nil, valueTag, protowire.BytesType)
	value = protowire.AppendString(value, tag)
	value = protowire.AppendTag(value, valueSimple, protowire.Fixed32Type)
	value = protowire.AppendFixed32(value, math.Float32bits(float32(x)))
	summary := protowire.AppendTag(nil, summaryValue, protowire.BytesType)
	summary = protowire.AppendBytes(summary, value)
	event := protowire.AppendTag(nil, eventStep, protowire.VarintType)
	event = protowire.AppendVarint(event, uint64(step))
	event = protowire.AppendTag(event, eventSummary, protowire.BytesType)
	t.record(protowire.AppendBytes(event, summary))
}

// record frames a message as TFRecord, the wall time put in front of it:
//
//	uint64 length, uint32 masked CRC of the length, message, uint32 masked CRC of it
func (t *TensorBoard) record(rest []byte) {
	if t.fail.failed() {
		return
	}
	msg := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	msg = protowire.AppendFixed64(msg, math.Float64bits(float64(t.now().UnixNano())/1e9))
	msg = append(msg, rest...)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(msg)))
	out = binary.LittleEndian.AppendUint32(out, maskedCRC(out))
	out = append(out, msg...)
	out = binary.LittleEndian.AppendUint32(out, maskedCRC(msg))
	_, err := t.w.Write(out)
	t.fail.note(err)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is TFRecord's checksum: CRC-32C rotated right by 15, plus a constant.
func maskedCRC(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// Close closes the file and returns the first error of the sink's life.
func (t *TensorBoard) Close() error {
	t.fail.note(t.close())
	return t.fail.err
}
