// A cell that is killed from outside, or hangs (`HANGS`), while it has its first job, and works all others. `KILLED_FILE`
// notes that it was.
import { existsSync, writeFileSync } from 'node:fs'
import type { CellRequest } from '../../../workers/process/cell.ts'

const note = process.env['KILLED_FILE'] ?? ''
process.on('message', ({ probe }: CellRequest) => {
  if (!existsSync(note)) {
    writeFileSync(note, '')
    while (process.env['HANGS']);
    process.kill(process.pid, 'SIGKILL')
  }
  process.send?.(probe ? { ok: true } : { disposition: { done: true } })
})
process.send?.({ ready: true })
