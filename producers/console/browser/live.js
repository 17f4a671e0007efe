// Keeps a page live: puts the texts of its stream into the elements with their ids, and says `unknown` when no news comes. It
// writes texts and a few attributes, never markup. Pages are read without it (producers/console/live/live.ts).

const root = document.querySelector('[data-live]')
const news = root.querySelector('[data-news]')
/** As in live.ts: LIVE.newsMs, and LIVE_ATTRIBUTES of texts.ts. */
const NEWS_MS = 10_000
const ATTRIBUTES = ['value', 'max', 'd', 'y1', 'y2', 'data-tone', 'datetime']
/** A page whose lists change all the time is asked for anew this often at most, in ms. */
const AGAIN_MS = 5_000

const texts = new Map()
const openedAt = Date.now()
let heardAt = Date.now()
let at = root.dataset.at
let isSilent = false

// The address of a page that was asked for anew is the page's own.
if (location.pathname === root.dataset.again && root.dataset.live !== undefined)
  history.replaceState(null, '', root.dataset.again.replace(/\/again$/, ''))

const stream = new EventSource(root.dataset.live)
stream.addEventListener('message', ({ data }) => hear(JSON.parse(data)))
setInterval(look, 500)
// Timers sleep while a page is hidden, and so does a computer.
for (const event of ['visibilitychange', 'pageshow', 'focus']) addEventListener(event, look, true)

function hear(message) {
  heardAt = Date.now()
  at = message.at
  for (const [key, text] of Object.entries(message.texts)) texts.set(key, text)
  // After a silence every text was written over.
  for (const [key, text] of isSilent ? texts : Object.entries(message.texts)) put(key, text)
  isSilent = false
  delete root.dataset.silent
  news.textContent = `As of ${at} UTC.`
  if (message.shape !== root.dataset.shape) change()
}

function put(key, text) {
  const [id, attribute] = key.split('@')
  const element = document.getElementById(id)
  if (element === null || !root.contains(element)) return
  if (attribute === undefined) {
    if (element.textContent !== text) element.textContent = text
  } else if (ATTRIBUTES.includes(attribute)) element.setAttribute(attribute, text)
}

/** Asks for the page anew, unless the person is in the middle of something. */
function change() {
  const isBusy = root.querySelector('details[open]') !== null || root.contains(document.activeElement)
  root.querySelector('[data-changed]').hidden = !isBusy
  if (!isBusy && Date.now() - openedAt > AGAIN_MS) location.replace(root.dataset.again)
}

/** Nothing that isn't known any more stays on the page as if it were. */
function look() {
  if (isSilent || Math.abs(Date.now() - heardAt) < NEWS_MS) return
  isSilent = true
  root.dataset.silent = ''
  for (const element of root.querySelectorAll('[data-figure]'))
    element.textContent = element.dataset.figure === 'short' ? '?' : `unknown since ${at}`
  for (const element of root.querySelectorAll('[data-tone]')) element.dataset.tone = 'unknown'
  news.textContent =
    stream.readyState === EventSource.CLOSED
      ? `Unknown since ${at} UTC: this page gets no news any more. Reload it.`
      : `Unknown since ${at} UTC: the console gets no news, or does not answer.`
}
