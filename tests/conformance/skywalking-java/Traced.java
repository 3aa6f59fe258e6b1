/** Serves a slow request after the other for as many seconds as it is told, traced by SkyWalking's Java agent. */
public class Traced {
    static long lookForTheOrder(long until) {
        long total = 0;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 1000; i++) {
                total += (long) i * i;
            }
        }
        return total;
    }

    static byte[] parcel;

    static void packTheParcels() {
        for (int i = 0; i < 1000; i++) {
            parcel = new byte[100_000];
        }
    }

    public void handle() {
        packTheParcels();
        lookForTheOrder(System.nanoTime() + 1_200_000_000L);
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[3]) * 1_000_000_000L;
        while (System.nanoTime() < end) {
            new Traced().handle();
        }
    }
}
