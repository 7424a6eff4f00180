package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"sallyport/gateway/task"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Tasks are the tasks in words of the caller, or of all principals for an operator.
type Tasks interface {
	List(ctx context.Context, limit int) ([]task.Task, error)
	Show(ctx context.Context, id string) (task.Task, error)
	Cancel(ctx context.Context, id string) error
	StartResume(ctx context.Context, id string) (task.Task, error)
}

// taskPages are the pages of tasks.
type taskPages struct{ *Dashboard }

// tasks returns the tasks, or an error if the gateway has none.
func (d taskPages) tasks() (Tasks, error) {
	if d.opts.Tasks == nil {
		return nil, &tool.Error{Kind: tool.NotFound, Message: "this gateway does no tasks"}
	}
	return d.opts.Tasks, nil
}

// TasksPage lists tasks.
type TasksPage struct {
	Tasks    []task.Task
	Status   task.Status
	Statuses []task.Status
	Pager    Pager
}

// maxTasks is the maximum number of listed tasks.
const maxTasks = 2000

func (d taskPages) list(r *request) (any, error) {
	tasks, err := d.tasks()
	if err != nil {
		return nil, err
	}
	p := TasksPage{
		Status:   task.Status(r.URL.Query().Get("status")),
		Statuses: []task.Status{task.Running, task.Done, task.Failed, task.Held, task.Asked, task.Refused, task.Planned, task.Canceled},
	}
	all, err := tasks.List(r.Context(), maxTasks)
	all = slices.DeleteFunc(all, func(t task.Task) bool { return p.Status != "" && t.Status != p.Status })
	p.Tasks, p.Pager = paginate(r, all, pageSize)
	return p, err
}

// TaskPage is one task.
type TaskPage struct {
	task.Task
	Rows []TurnRow
	// Args are in JSON, Schema is the one of the answer.
	Args, Schema string
	// Moving says that it is not over. MayCancel and MayResume say what the caller can do.
	Moving, MayCancel, MayResume bool
}

// TurnRow is one turn of a task.
type TurnRow struct {
	task.Turn
	Number int
	// Source is the program, if it is one.
	Source Source
	// Price is the one of the turn, "" if it has none.
	Price string
}

func (d taskPages) show(r *request) (any, error) {
	tasks, err := d.tasks()
	if err != nil {
		return nil, err
	}
	t, err := tasks.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	r.setTitle(cmp.Or(sanitize.Line(t.Task, maxTitle), t.ID), Crumb{"Tasks", tasksPath})
	p := TaskPage{Task: t, Moving: !t.Over(), Schema: string(t.Output)}
	may := tool.May(r.Context(), tool.ScopeExecute)
	p.MayCancel = may && p.Moving
	p.MayResume = may && t.Resumable() && t.Principal == tool.Principal(r.Context())
	for _, name := range slices.Sorted(maps.Keys(t.Args)) {
		p.Args += fmt.Sprintf("%s = %s\n", name, t.Args[name])
	}
	for i, turn := range t.Turns {
		row := TurnRow{Turn: turn, Number: i + 1, Price: price(turn.Price)}
		if turn.Kind == task.KindProgram {
			row.Source = source(fmt.Sprintf("Program of turn %d", i+1), turn.Text, 0)
		}
		p.Rows = append(p.Rows, row)
	}
	return p, nil
}

// price is an amount in the currency of the settings, "" for none.
func price(amount float64) string {
	if amount == 0 {
		return ""
	}
	return fmt.Sprintf("%.4g", amount)
}

const tasksPath = "/ui/tasks"

func (r *request) taskPath() string { return tasksPath + "/" + url.PathEscape(r.PathValue("id")) }

func (d taskPages) cancel(r *request) (string, error) {
	tasks, err := d.tasks()
	if err == nil {
		err = tasks.Cancel(r.Context(), r.PathValue("id"))
	}
	return r.afterTask(err, "Canceling.")
}

func (d taskPages) resume(r *request) (string, error) {
	tasks, err := d.tasks()
	if err == nil {
		_, err = tasks.StartResume(r.Context(), r.PathValue("id"))
	}
	return r.afterTask(err, "Resumed.")
}

// afterTask returns to the task's page, with what was done or why nothing was.
func (r *request) afterTask(err error, said string) (string, error) {
	switch e := tool.AsError(err); {
	case err == nil:
		r.say(said)
	case e.Kind == tool.Invalid || e.Kind == tool.Limit:
		r.warn("Nothing was done: " + e.Message + ".")
	default:
		return "", err
	}
	return r.taskPath(), nil
}
