// Lowers the priority of a process with bulk work, so that the operating system prefers interactive work on the same
// machine. On an idle machine bulk work stays as fast.
import { constants, setPriority } from 'node:os'

/** Lowers the priority for the rest of this process's life. Does nothing if the system doesn't permit it. */
export function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW)
  } catch {
    // The system doesn't permit it; everything works without it.
  }
}
