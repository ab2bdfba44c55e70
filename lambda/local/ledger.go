package local

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Bill is what a function has used. Dollars are computed elsewhere; what is
// billed here is a model of AWS's bill.
type Bill struct {
	// Requests counts calls that ran, every attempt of an asynchronous one.
	Requests int64 `json:"requests"`
	// ColdStarts counts environments that were started.
	ColdStarts int64 `json:"cold_starts"`
	// Throttled and Failed count refused requests (429) and calls that ended in a
	// function error: reported, crashed, timed out, or with too long a reply.
	Throttled int64 `json:"throttled"`
	Failed    int64 `json:"failed"`
	// BilledMS is the billed time, each call rounded up to a millisecond; InitMS is
	// the part of it that new environments spent before their first call.
	BilledMS int64 `json:"billed_ms"`
	InitMS   int64 `json:"init_ms"`
	// MBMS is billed milliseconds times the function's memory in MB, summed.
	MBMS int64 `json:"mb_ms"`
	// BytesUp and BytesDown are payloads and replies; BytesStreamed is the part of
	// streamed replies past their first 6 MiB, which has a price of its own.
	BytesUp       int64 `json:"bytes_up"`
	BytesDown     int64 `json:"bytes_down"`
	BytesStreamed int64 `json:"bytes_streamed"`
}

// GBSeconds is the billed time times memory, in the unit of the price list.
func (b Bill) GBSeconds() float64 { return float64(b.MBMS) / 1024 / 1000 }

func (b *Bill) add(o Bill) {
	b.Requests += o.Requests
	b.ColdStarts += o.ColdStarts
	b.Throttled += o.Throttled
	b.Failed += o.Failed
	b.BilledMS += o.BilledMS
	b.InitMS += o.InitMS
	b.MBMS += o.MBMS
	b.BytesUp += o.BytesUp
	b.BytesDown += o.BytesDown
	b.BytesStreamed += o.BytesStreamed
}

// Ledger holds the bill of each function.
type Ledger map[string]Bill

// Total is the sum over all functions.
func (l Ledger) Total() Bill {
	var sum Bill
	for _, name := range slices.Sorted(maps.Keys(l)) {
		sum.add(l[name])
	}
	return sum
}

// book is a Ledger that many goroutines write.
type book struct {
	mu struct {
		sync.Mutex
		bills map[string]Bill
	}
}

func (b *book) add(function string, more Bill) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.bills == nil {
		b.mu.bills = make(map[string]Bill)
	}
	bill := b.mu.bills[function]
	bill.add(more)
	b.mu.bills[function] = bill
}

// Ledger is a snapshot of what has been billed: calls that have ended. A function
// that was never called is not in it.
func (s *Service) Ledger() Ledger {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return maps.Clone(s.book.mu.bills)
}

// milliseconds is d rounded up to a billing step.
func milliseconds(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}
