package main

import "github.com/spf13/cobra"

func (a *app) devicesCommand() *cobra.Command {
	return &cobra.Command{Use: "devices", Short: "Instruction sets and GPUs, and why one cannot be used", Args: noArgs, RunE: func(*cobra.Command, []string) error { return nil }}
}
