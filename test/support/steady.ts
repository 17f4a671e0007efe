// Repeats a test whose subject is a short time, if this process stood still meanwhile.

/**
 * The answer of `work`. If it throws, and this process stood still for `ms` or longer while it ran, it is done anew, up to
 * `tries` times in all.
 */
export async function steady<T>(ms: number, work: () => Promise<T>, tries = 5): Promise<T> {
  for (let n = 1; ; n += 1) {
    let gap = 0
    let at = performance.now()
    const look = () => {
      const now = performance.now()
      gap = Math.max(gap, now - at)
      at = now
    }
    const timer = setInterval(look, 20)
    try {
      return await work()
    } catch (error) {
      look()
      if (n === tries || gap < ms) throw error
    } finally {
      clearInterval(timer)
    }
  }
}
