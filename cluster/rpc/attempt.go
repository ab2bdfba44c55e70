package rpc

import (
	"fmt"
	"strconv"
	"strings"
)

const attemptWord = ", attempt "

// Attempt is the name by which the servers of one attempt at a job know each other.
func Attempt(job string, attempt int) string {
	if attempt == 0 {
		return job
	}
	return fmt.Sprintf("%s%s%d", job, attemptWord, attempt)
}

// Later says that name is that of a later attempt at the same job than ours.
func Later(name, ours string) bool {
	a, i := parseAttempt(name)
	b, k := parseAttempt(ours)
	return a == b && i > k
}

func parseAttempt(name string) (job string, attempt int) {
	if at := strings.LastIndex(name, attemptWord); at >= 0 {
		if n, err := strconv.Atoi(name[at+len(attemptWord):]); err == nil && n > 0 {
			return name[:at], n
		}
	}
	return name, 0
}
