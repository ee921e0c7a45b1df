// Package tasks keeps tasks, and deploys agents that work on them.
package tasks
