// Whether a process can work, as its port says. A process that began a moment ago, or whose server waits for its turn on a
// busy machine, is ready a little later: so a test waits, and shows the reasons if it never is.
import { until } from './until.ts'

/** Waits until /readyz of the process at `url` answers 200. */
export async function untilReady(url: string): Promise<void> {
  let said = ''
  await until(async () => {
    const answer = await fetch(`${url}/readyz`)
    said = await answer.text()
    return answer.status === 200
  }).catch((error: Error) => {
    throw new Error(`${error.message}; ${url}/readyz says: ${said}`)
  })
}
