// What the bench asks of the page: when a live figure's picture changes, and when the new one is painted. All times are
// the page's own clock, in milliseconds; `node` is the figure's output area.

window.bench = {
    // Takes notes in `node.watch`. A picture is painted by an animation frame that finds it loaded, which is done with that
    // when the browser comes to its next task. (If a picture that does not ask for it is decoded later still, that is to
    // the credit of the usual way.) One that was replaced before that was never seen. Without a picture, a text counts.
    watch(node) {
        node.watch?.end()
        const end = new AbortController()
        const picture = () => [...node.querySelectorAll('img[src^="data:image/png"]')].find(img => img.offsetParent)
            ?? node.querySelector('.widget-html-content b')
        const content = shown => shown.src ?? shown.textContent
        const observe = (what, options) => {
            const observer = new MutationObserver(what)
            observer.observe(node, {subtree: true, ...options})
            end.signal.addEventListener('abort', () => observer.disconnect())
        }
        const frame = () => new Promise(requestAnimationFrame)
        const task = () => new Promise(done => {
            const {port1, port2} = new MessageChannel()
            port1.onmessage = done
            port2.postMessage(0)
        })
        const watch = node.watch = {pressed: 0, moved: 0, changed: 0, shown: [], end: () => end.abort()}
        let last = picture(), src = content(last)
        const look = async () => {
            const img = picture()
            if (!img || (img === last && content(img) === src)) return
            last = img
            src = content(img)
            watch.changed = performance.now()
            do { await frame() } while (img.isConnected && img.complete === false)
            if (!img.isConnected) return
            await task()
            watch.shown.push(performance.now())
        }
        observe(look, {childList: true, characterData: true, attributeFilter: ['src']})
        observe(() => { watch.moved = performance.now() }, {attributeFilter: ['aria-valuenow']})
        const options = {capture: true, signal: end.signal}
        node.addEventListener('keydown', event => { watch.pressed = event.timeStamp }, options)
    },

    // From the key press to the first picture after `count` of them.
    async latency(node, count) {
        const give_up = performance.now() + 10000
        while (node.watch.shown.length === count) {
            if (performance.now() > give_up) throw new Error('the slider moved, but no new picture came')
            await new Promise(requestAnimationFrame)
        }
        return node.watch.shown.at(-1) - node.watch.pressed
    },

    // Waits until the kernel has nothing to do, and nothing has changed for a fifth of a second.
    async settled(node) {
        const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel
        const quiet = () => performance.now() - Math.max(node.watch.moved, node.watch.changed) > 200
        while (kernel.status !== 'idle' || !quiet()) await new Promise(done => setTimeout(done, 20))
    },
}
