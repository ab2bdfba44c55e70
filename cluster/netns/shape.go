package netns

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Shape is what a link does to packets, in each direction. The zero value does nothing.
type Shape struct {
	Rate  float64       // bits per second; 0: no limit
	Delay time.Duration // of each packet, one way
	Loss  float64       // share of packets, 0 to 1
	// Queue is how many bytes may wait for the rate; 0: 2 MiB. What comes then is dropped.
	Queue int
}

// String is the shape for people.
func (s Shape) String() string {
	return fmt.Sprintf("%g Mbit/s, %v, %g %% loss", s.Rate/1e6, s.Delay, 100*s.Loss)
}

// Count is what has passed a link in one direction.
type Count struct {
	Packets, Bytes int64 // carried
	Lost           int64 // packets, by the link's loss
	Full           int64 // packets for which the queue had no room
	Cut            int64 // packets that came while the link was cut
}

// A line is one direction of a link: a clock and a die, without packets.
type line struct {
	shape Shape
	die   *rand.Rand
	free  time.Duration // when what was sent has left
	cut   bool
	count Count
}

func newLine(s Shape, seed, number uint64) *line {
	if s.Queue == 0 {
		s.Queue = 2 << 20
	}
	return &line{shape: s, die: rand.New(rand.NewPCG(seed, number))}
}

// admit says when a packet of so many bytes that comes at now arrives, and whether it
// does. Which packets are lost depends on the seed and their number alone.
func (l *line) admit(now time.Duration, size int) (due time.Duration, ok bool) {
	lost := l.die.Float64() < l.shape.Loss
	if l.cut {
		l.count.Cut++
		return 0, false
	}
	if lost {
		l.count.Lost++
		return 0, false
	}
	start := max(now, l.free)
	if l.shape.Rate > 0 {
		if waiting := (start - now).Seconds() * l.shape.Rate / 8; waiting+float64(size) > float64(l.shape.Queue) {
			l.count.Full++
			return 0, false
		}
		l.free = start + time.Duration(float64(size)*8/l.shape.Rate*1e9)
		start = l.free
	}
	l.count.Packets++
	l.count.Bytes += int64(size)
	return start + l.shape.Delay, true
}
