// Bulk work gives way: on a machine that it shares with somebody who waits for an answer, the operating system serves him
// first. Alone on a machine it is as fast as ever.
import { constants, setPriority } from 'node:os'

/** For the rest of this process's life; where the system doesn't permit it, nothing changes. */
export function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW)
  } catch {
    // Fairness is a courtesy, not a promise.
  }
}
