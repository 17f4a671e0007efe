// Keeps pages live: puts the texts of its stream into the elements with their ids, and says `unknown` when no news comes. It
// writes texts, a few attributes and the marks of states, never markup. Pages are read without it (producers/console/live/live.ts).
import { mark } from './mark.js'

const root = document.querySelector('[data-again]')
const news = root.querySelector('[data-news]')
/** As in live.ts: LIVE.newsMs, and LIVE_ATTRIBUTES of texts.ts. */
const NEWS_MS = 10_000
const ATTRIBUTES = ['value', 'max', 'data-tone', 'data-state', 'datetime', 'd', 'points', 'x', 'y', 'y1', 'y2', 'width']
/** A page whose lists change all the time is asked for anew this often at most, in ms. */
const AGAIN_MS = 5_000
/** A page that the person leaves isn't asked for anew within this time, in ms: that would take the place of where he or she goes. */
const LEAVING_MS = 10_000
/** How far down the person was when the page was asked for anew. */
const PLACE = 'live-place'

const texts = new Map()
const openedAt = Date.now()
let heardAt = Date.now()
let at = root.dataset.at
let shape = root.dataset.shape
let isSilent = false
let isOver = false
let leavesAt = Number.NEGATIVE_INFINITY
let stream

if (location.pathname === root.dataset.again) comeBack()
// A page on which nothing changes any more has no stream.
if (root.dataset.live !== undefined) watch()

/** The address of a page that was asked for anew is the page's own, and the person is where he or she was. */
function comeBack() {
  history.replaceState(null, '', root.dataset.again.replace(/\/again$/, ''))
  const place = sessionStorage.getItem(PLACE)
  sessionStorage.removeItem(PLACE)
  if (place !== null) scrollTo(0, Number(place))
}

function watch() {
  listen()
  setInterval(look, 500)
  // Timers sleep while a page is hidden, and so does a computer.
  for (const event of ['visibilitychange', 'pageshow', 'focus']) addEventListener(event, look, true)
  document.addEventListener('visibilitychange', listen)
  addEventListener('beforeunload', () => {
    leavesAt = Date.now()
  })
}

/** A page that nobody sees takes no stream: a session has four. */
function listen() {
  stream?.close()
  if (isOver || document.hidden) return
  stream = new EventSource(root.dataset.live)
  // The first message of a connection holds every text.
  stream.addEventListener('open', () => texts.clear())
  stream.addEventListener('message', ({ data }) => hear(JSON.parse(data)))
  // Only a wall display is told that it is over: nobody stands before it to reload it.
  stream.addEventListener('over', () => location.reload())
}

function hear(message) {
  heardAt = Date.now()
  at = message.at
  shape = message.shape
  for (const key of message.gone ?? []) texts.delete(key)
  for (const [key, text] of Object.entries(message.texts)) texts.set(key, text)
  // After a silence every text was written over.
  for (const [key, text] of isSilent ? texts : Object.entries(message.texts)) put(key, text)
  isSilent = false
  delete root.dataset.silent
  news.textContent = `As of ${at} UTC.`
  if (message.isLast) finish()
  if (shape !== root.dataset.shape) change()
}

/** Nothing changes any more: without this the browser would open the stream again. */
function finish() {
  isOver = true
  stream.close()
}

function put(key, text) {
  const [id, attribute] = key.split('@')
  const element = document.getElementById(id)
  if (element === null || !root.contains(element)) return
  if (attribute === undefined) {
    if (element.textContent !== text) element.textContent = text
  } else if (attribute === 'data-state') mark(element, text)
  else if (ATTRIBUTES.includes(attribute)) element.setAttribute(attribute, text)
}

/**
 * Asks for the page anew, unless the person is in the middle of something: the focus, what was typed into the bar, and a text that
 * was chosen to be copied would be lost. What the page then lists no more isn't known.
 */
function change() {
  forget(key => !texts.has(key))
  const isBusy =
    root.querySelector('details[open]') !== null ||
    document.activeElement !== document.body ||
    !getSelection().isCollapsed
  root.querySelector('[data-changed]').hidden = !isBusy
  const isLeaving = Date.now() - leavesAt < LEAVING_MS
  if (isBusy || isLeaving || Date.now() - openedAt <= AGAIN_MS) return
  sessionStorage.setItem(PLACE, String(scrollY))
  location.replace(root.dataset.again)
}

/** Nothing that isn't known any more stays on the page as if it were. */
function look() {
  // No message comes any more that would ask.
  if (isOver && shape !== root.dataset.shape) change()
  if (isOver || isSilent || Math.abs(Date.now() - heardAt) < NEWS_MS) return
  isSilent = true
  root.dataset.silent = ''
  forget(() => true)
  news.textContent =
    stream === undefined || stream.readyState === EventSource.CLOSED
      ? `Unknown since ${at} UTC: this page gets no news any more. Reload it.`
      : `Unknown since ${at} UTC: the console gets no news, or does not answer.`
}

/** Writes over the figures, tones and states whose keys are chosen. */
function forget(isChosen) {
  for (const element of root.querySelectorAll('[data-figure]'))
    if (isChosen(element.id)) put(element.id, unknownOf(element))
  for (const element of root.querySelectorAll('[data-tone]'))
    if (isChosen(`${element.id}@data-tone`)) element.dataset.tone = 'unknown'
  for (const element of root.querySelectorAll('[data-state]'))
    if (isChosen(`${element.id}@data-state`)) mark(element, 'UNKNOWN')
}

function unknownOf(element) {
  if (element.dataset.figure === 'short') return '?'
  return /^unknown since /.test(element.textContent) ? element.textContent : `unknown since ${at}`
}
