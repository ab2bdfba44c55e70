package invoke

import (
	"regexp"
	"strconv"

	"dorylus/engine"
)

// The fields of a REPORT line, such as
//
//	REPORT RequestId: 8f5…	Duration: 102.25 ms	Billed Duration: 133 ms	Memory Size: 1769 MB	Max Memory Used: 36 MB	Init Duration: 30.10 ms
var (
	billedField = regexp.MustCompile(`REPORT .*Billed Duration: (\d+) ms`)
	memoryField = regexp.MustCompile(`REPORT .*Memory Size: (\d+) MB`)
	initField   = regexp.MustCompile(`REPORT .*Init Duration: ([\d.]+) ms`)
)

// parseReport reads the last REPORT line of a log. ok: there is one.
func parseReport(log string) (used engine.LambdaUsed, ok bool) {
	last := func(re *regexp.Regexp) string {
		all := re.FindAllStringSubmatch(log, -1)
		if len(all) == 0 {
			return ""
		}
		return all[len(all)-1][1]
	}
	billed, err := strconv.ParseInt(last(billedField), 10, 64)
	if err != nil {
		return used, false
	}
	memory, err := strconv.Atoi(last(memoryField))
	if err != nil {
		return used, false
	}
	used.BilledMS, used.MemoryMB = billed, memory
	if ms, err := strconv.ParseFloat(last(initField), 64); err == nil {
		used.InitMS = int64(ms)
	}
	return used, true
}
