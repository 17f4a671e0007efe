// The first import of the package: an older Node gets one line instead of an error out of the middle of a library.
const OLDEST = 22

const major = Number(process.versions.node.split('.')[0])
if (major < OLDEST) {
  console.error(
    `tokenmill-client needs Node ${OLDEST} or newer; this is ${process.versions.node}. Install Node 24, then run the program again.`,
  )
  process.exit(78)
}
