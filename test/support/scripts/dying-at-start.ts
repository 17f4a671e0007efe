// A worker process that is killed before it says that it works, the first time; the next one works.
import { existsSync, writeFileSync } from 'node:fs'

const mark = process.env['TEST_DIED'] ?? ''
if (!existsSync(mark)) {
  writeFileSync(mark, process.env['TOKENMILL_PROCESS_ID'] ?? '')
  process.kill(process.pid, 'SIGKILL')
}
process.on('SIGTERM', () => process.exit(0))
process.on('message', () => {})
process.send?.({ ready: true })
