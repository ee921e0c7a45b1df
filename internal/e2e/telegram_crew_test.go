package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Two programs with one store talk on Telegram: the one that does is killed in the middle of a cycle, and every answer
// comes, once.
func TestACrewOnTelegram(t *testing.T) {
	t.Parallel()
	api := startBotAPI(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	settings := "demo: {pace: 5ms}\ntelegram: {crew: example, chat_id: 5, bot_token: '${BOT}', api_url: '" + api.url + "'}\n"
	if err := os.WriteFile(filepath.Join(dir, "continuo.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() child {
		command := exec.Command(path, "serve", "--listen", "127.0.0.1:0") //nolint:noctx // start ends it
		command.Dir = dir
		command.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "BOT=1:listener"}
		return start(t, command, `on (http://127\.0\.0\.1:\d+)`, "/readyz")
	}
	first := run()
	run()
	api.write("1:listener", "Make a plan for a pond.")
	api.await("1:listener", 1)
	if err := syscall.Kill(first.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The part that was under way when the program was killed may come again. All have answered before the next message:
	// the demo model passes where it has spoken behind the newest one.
	_, twice := countMessages(api.await("1:listener", 3))
	api.await("1:listener", 3+twice)
	run()
	api.write("1:listener", "And a bridge.")
	counted, twice := countMessages(api.await("1:listener", 6+twice))
	if twice > 0 {
		counted, twice = countMessages(api.await("1:listener", 6+twice))
	}
	for _, name := range []string{"*__Planner__*", "*__Builder__*", "*__Reviewer__*"} {
		if counted[name+" on the pond"] < 1 || counted[name+" on the bridge"] != 1 || twice > 1 {
			t.Errorf("they spoke: %v", counted)
		}
	}
}

// countMessages counts what each role said on each topic, and the messages that came again.
func countMessages(sent []botMessage) (counted map[string]int, twice int) {
	counted = map[string]int{}
	for _, message := range sent {
		name, _, _ := strings.Cut(message.Text, "\n")
		topic := "pond"
		if strings.Contains(message.Text, "And a bridge") {
			topic = "bridge"
		}
		if counted[name+" on the "+topic]++; counted[name+" on the "+topic] > 1 {
			twice++
		}
	}
	return counted, twice
}
