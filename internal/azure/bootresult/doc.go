// Package bootresult reads how the provisioning of a node ended.
//
// Azure reports it in one place only: the result of the CustomScript extension which
// waits on the machine for the end of provisioning. Its message holds, between
// [stdout] and [stderr], a JSON object with the exit code and the end of the log. Both
// the operation of the extension and its instance view carry that message, and an AKS
// machine's provisioning error does.
//
// What each exit code means is one row of one table, [Codes], whose source is the list
// in AKS's node images (Azure/AgentBaker,
// parts/linux/cloud-init/artifacts/cse_helpers.sh). The page docs/boot-errors.md is
// written from it.
package bootresult
