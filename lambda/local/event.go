package local

import "time"

// Kind says what an Event reports.
type Kind string

// The kinds of events. Fields that a kind has besides Time, Function, Environment
// and RequestID stand in brackets.
const (
	// ColdStart: a process was started [PID, Text: how CPU and memory are held].
	ColdStart Kind = "cold_start"
	// Ready: a new environment asked for its first call [PID, Init].
	Ready Kind = "ready"
	// Invoked: a call was handed to a worker [PID, Cold, Bytes up].
	Invoked Kind = "invoked"
	// Finished: a call ended and is billed [Cold, Init, Duration, Billed, Bytes
	// down, ErrorType if it failed].
	Finished Kind = "finished"
	// Rejected: a request was refused before it ran [Status, ErrorType, Text].
	Rejected Kind = "rejected"
	// Ended: an environment is gone [PID, Text: why].
	Ended Kind = "ended"
	// Fault: chaos struck [Text: which fault].
	Fault Kind = "fault"
	// Retry: a failed asynchronous call waits for another attempt [Duration: the wait].
	Retry Kind = "retry"
	// Dropped: an asynchronous call is given up [Text: why].
	Dropped Kind = "dropped"
)

// Event is something that happened in the service.
type Event struct {
	Time        time.Time     `json:"time"`
	Kind        Kind          `json:"kind"`
	Function    string        `json:"function,omitempty"`
	Environment string        `json:"environment,omitempty"`
	RequestID   string        `json:"request_id,omitempty"`
	PID         int           `json:"pid,omitempty"`
	Cold        bool          `json:"cold,omitempty"`
	Init        time.Duration `json:"init_ns,omitempty"`
	Duration    time.Duration `json:"duration_ns,omitempty"`
	// Billed is a whole number of milliseconds.
	Billed    time.Duration `json:"billed_ns,omitempty"`
	Bytes     int64         `json:"bytes,omitempty"`
	Status    int           `json:"status,omitempty"`
	ErrorType string        `json:"error_type,omitempty"`
	Text      string        `json:"text,omitempty"`
}

// emit hands an event to the listener, one at a time.
func (s *Service) emit(e Event) {
	e.Time = s.opt.Clock.Now()
	s.events.Lock()
	defer s.events.Unlock()
	s.opt.OnEvent(e)
}
