// A person who has no mouse.
import type { Page } from 'playwright-core'

/** More elements than any page of these tests has. */
const STEPS_MAX = 120

/** The words by which the element with the focus is known. */
const NAMED = `(() => {
  const one = document.activeElement
  if (one === null || one === document.body) return ''
  return (one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? one.textContent ?? '').trim()
})()`

export async function focused(page: Page): Promise<string> {
  return (await page.evaluate(NAMED)) as string
}

/** Presses Tab until the element with these words has the focus. Fails if the focus comes round without it. */
export async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const seen: string[] = []
  const isIt = (words: string) => (typeof name === 'string' ? words === name : name.test(words))
  for (let step = 0; step < STEPS_MAX; step++) {
    await page.keyboard.press('Tab')
    const words = await focused(page)
    if (isIt(words)) return
    seen.push(words)
  }
  throw new Error(`Tab does not come to ${name}, but to ${[...new Set(seen)].join(' | ')}`)
}

/** Goes by Tab to what leads to another page, presses Enter, and waits for that page. */
export async function follow(page: Page, name: string | RegExp): Promise<void> {
  const from = page.url()
  await press(page, name)
  await page.waitForURL(({ href }) => href !== from)
}

/** Goes to a link or a button by Tab and presses Enter. */
export async function press(page: Page, name: string | RegExp): Promise<void> {
  await tabTo(page, name)
  await page.keyboard.press('Enter')
}
