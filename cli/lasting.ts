// Prints what a long command is doing: nothing in its first five seconds, then every five seconds one line, if the text
// has changed. The command gives the texts.
const EVERY_MS = 5_000

export interface Lasting {
  /** What is being done from now on, as a sentence. */
  at(line: string): void
  end(): void
}

export function openLasting(tell: (line: string) => void): Lasting {
  let now = ''
  let told = ''
  const timer = setInterval(() => {
    if (now !== told) tell(now)
    told = now
  }, EVERY_MS)
  return {
    at(line) {
      now = line
    },
    end: () => clearInterval(timer),
  }
}
