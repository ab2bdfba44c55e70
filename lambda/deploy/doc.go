// Package deploy puts the worker on AWS: its function, the role that it runs under, and
// its way to the graph servers. It says what it is going to do before it does it, and
// can be run again: what is there is brought up to date.
//
// Three parties need rights, and get no more than these:
//
//   - the worker: to write its log, and where it has to reach graph servers inside a VPC,
//     what Lambda needs to attach it there (network interfaces); its own code may not use
//     those;
//   - the graph servers (the driver): to invoke this one function;
//   - whoever deploys: to create and update this one function, this one role and, where
//     workers are attached to a VPC and no security group is named for them, one that
//     carries the function's tag; and to hand the role to Lambda.
//
// Security groups that are there already, the graph servers' above all, are not changed:
// the plan and the result name the rules that they need, as commands.
package deploy
