// Lowers the priority of a process with bulk work: the operating system then serves interactive work on the same machine
// first. On an idle machine bulk work is as fast as before.
import { constants, setPriority } from 'node:os'

/** For the rest of this process's life; where the system doesn't permit it, nothing changes. */
export function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW)
  } catch {
    // Not every system permits it, and everything works without it.
  }
}
