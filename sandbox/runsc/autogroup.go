package runsc

import (
	"fmt"
	"os"
	"strconv"
)

// SetGroupNice sets the niceness of the scheduling group of the container's sentry, -20 to 19. Where Linux makes a group of
// each session, the niceness of a process counts only among the processes of its own group, and a sentry has a session of
// its own: see "The autogroup feature" in sched(7). It returns an error if the sentry is unknown or Linux makes no groups.
func (p *Process) SetGroupNice(nice int) error {
	sentry := p.Sentry()
	if sentry == 0 {
		return fmt.Errorf("set the niceness of a scheduling group: the sentry of %s is unknown", p.id)
	}
	return os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", sentry), []byte(strconv.Itoa(nice)), 0)
}
