/** Answers requests one after another for a number of seconds: burns CPU time in each, allocates, waits for a lock, throws. */
public class Shop {
    static volatile long sink;
    static final Object LOCK = new Object();
    static final java.util.ArrayDeque<byte[]> kept = new java.util.ArrayDeque<>();

    static void burnProcessor(long until) {
        while (System.nanoTime() < until) {
            for (int i = 0; i < 100_000; i++) {
                sink = sink * 31 + i;
            }
            kept.add(new byte[20_000]);
            if (kept.size() > 500) {
                kept.remove();
            }
        }
    }

    static void answerOrder() throws Exception {
        burnProcessor(System.nanoTime() + 300_000_000L);
        synchronized (LOCK) {
            sink++;
        }
        try {
            throw new IllegalStateException("out of stock");
        } catch (IllegalStateException expected) {
            sink++;
        }
    }

    static void holdLock() throws Exception {
        synchronized (LOCK) {
            Thread.sleep(50);
        }
        Thread.sleep(5);
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Thread holder = new Thread(() -> {
            try {
                while (System.nanoTime() < end) {
                    holdLock();
                }
            } catch (Exception impossible) {
                throw new IllegalStateException(impossible);
            }
        }, "holder");
        holder.start();
        while (System.nanoTime() < end) {
            answerOrder();
        }
        holder.join();
    }
}
