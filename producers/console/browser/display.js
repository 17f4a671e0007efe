// A wall display: takes the value of its link out of the address and posts it, and comes back by itself after a silence, because
// nobody stands before it. It writes texts only, never markup.

const form = document.querySelector('form[data-display]')
const live = document.querySelector('[data-live]')
/** How often a display without news asks whether its page can be had again, in ms. */
const ASK_MS = 15_000

if (form !== null) open()
if (live !== null) setInterval(ask, ASK_MS)

function open() {
  // The fragment is seen by no server and no log; it leaves the address at once.
  const value = location.hash.slice(1)
  history.replaceState(null, '', location.pathname)
  if (!/^[A-Za-z0-9_-]{43}$/.test(value)) {
    form.querySelector('[data-status]').textContent = 'This link is not whole. Open the link that you were given again.'
    return
  }
  form.elements.link.value = value
  form.submit()
}

/** Leaves the page, which says `unknown`, only for one that is there. */
async function ask() {
  if (live.dataset.silent === undefined) return
  const answer = await fetch('/display', { redirect: 'manual' }).catch(() => undefined)
  if (answer?.status === 200 || answer?.status === 403) location.replace('/display')
}
