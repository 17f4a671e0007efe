// Lowers the priority of a process with bulk work, so that the operating system prefers interactive work on the same
// machine. On an idle machine bulk work stays as fast. Whatever the system doesn't permit is left as it is: everything works
// without it. Where locks must be renewed soon the priority stays the usual one: while other programs use the whole
// processor, a process of low priority may need seconds to renew its locks, and what it took is given to it again and again.
import { readFileSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** The priority is lowered only if locks last at least this long, in ms. */
const LOCK_MS_MIN = 60_000
/** A tenth of the processor time that a session of the usual priority gets where all of it is in use. */
const SESSION_PRIORITY = 10
/** Linux permits ten changes a second, of all users together. */
const RETRY_MS = 200
const RETRIES_MAX = 25

/** Lowers the priority for the rest of this process's life. */
export function lowerPriority(lockMs: number): void {
  if (lockMs < LOCK_MS_MIN) return
  try {
    setPriority(constants.priority.PRIORITY_LOW)
  } catch {
    // The system doesn't permit it.
  }
}

/**
 * Lowers the priority of the session that this process began, if it began one. Linux may group processes by session
 * (`kernel.sched_autogroup_enabled`): then the priority of a process counts only within its session, and each session has a
 * priority of its own. Call it once the process works: until then nothing would be gained, and its start could take long.
 */
export function lowerSession(lockMs: number): void {
  if (lockMs >= LOCK_MS_MIN && ownSession() === process.pid) lowerGroup(RETRIES_MAX)
}

function lowerGroup(retries: number): void {
  try {
    writeFileSync('/proc/self/autogroup', String(SESSION_PRIORITY))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || retries === 0) return
    setTimeout(lowerGroup, RETRY_MS * (1 + Math.random()), retries - 1).unref()
  }
}

/** The id of this process's session; undefined where there is no /proc. */
function ownSession(): number | undefined {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3])
  } catch {
    return undefined
  }
}
