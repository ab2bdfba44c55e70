// Package image holds what makes container images of the commands, and the tests of the
// Dockerfile, which stands at the top of the repository.
//
// images.sh builds the images where there is a container engine. replay.sh builds them
// upon a Debian that it makes itself, so that nothing is pulled, and runs this package's
// tests on what comes out. The tests alone read the Dockerfile, and carry out the
// instructions of its last stages on a root folder with this machine's C library: what
// is not copied there by the Dockerfile, the program does not find.
package image
